"""``privcov reproduce``: a smoke run of every paper, from the command line to its page."""

from __future__ import annotations

import csv
import json

import pytest

from privcov.cli import main
from privcov_lab.reproduce import PAPERS, study, writing
from privcov_lab.reproduce.datasets import Datasets
from privcov_lab.reproduce.running import run as measure
from privcov_lab.reproduce.study import Effort


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def drawn(monkeypatch):
    """Every figure that is saved, by name, still open."""
    kept, save = {}, writing.figures.save

    def keep(figure, *paths, force):
        save(figure, *paths, force=force)
        kept[paths[0].stem] = figure

    monkeypatch.setattr(writing.figures, "save", keep)
    return kept


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.long
def test_a_smoke_run_of_every_paper_gives_claims_figures_and_tables(paper, drawn, request, tmp_path, capsys):
    """Every figure is drawn with labelled axes, and no legend covers data: legends lie outside all axes."""
    data = request.getfixturevalue("papers_data") if study(paper).tables else tmp_path
    code, out, err = run(
        capsys, "reproduce", paper, "--quick", "--data", data, "--offline", "--workers", 1, "-o", tmp_path, "--json"
    )  # fmt: skip
    assert code == 0, err
    (done,) = json.loads(out)["papers"]
    place = tmp_path / f"{paper}-quick"
    assert len(done["claims"]) >= 3
    assert "smoke run" in (place / "index.html").read_text(encoding="utf-8")
    assert drawn
    for name, figure in drawn.items():
        for axes in (axes for axes in figure.axes if axes.get_visible()):
            assert axes.get_xlabel(), name
            assert axes.get_ylabel(), name
            for legend in [*figure.legends, *filter(None, [axes.get_legend()])]:
                assert not legend.get_window_extent().overlaps(axes.bbox), name
        for ending in ("svg", "png"):
            assert (place / "figures" / f"{name}.{ending}").stat().st_size > 1000
    tables = sorted((place / "tables").glob("*.csv"))
    assert tables
    for path in tables:
        cells = [cell for row in list(csv.reader(path.open(encoding="utf-8")))[1:] for cell in row]
        assert cells, path
        assert not {"nan", "inf", "-inf"} & set(cells), path


@pytest.mark.long
def test_two_processes_measure_what_one_does_and_a_second_run_measures_nothing(tmp_path):
    whole, effort, data = study("klsu2018"), Effort(quick=True), Datasets(tmp_path, online=False)
    made = []
    for workers in (1, 2):
        (tmp_path / str(workers)).mkdir()
        left = []
        place = tmp_path / str(workers)
        results = measure(
            whole, data=data, directory=place, effort=effort, workers=workers, begin=left.append
        )
        measure(whole, data=data, directory=place, effort=effort, workers=workers, begin=left.append)
        assert left[0] > 0
        assert left[1] == 0
        made.append([{k: v for k, v in line.items() if k != "seconds"} for line in results.lines])
    assert made[0] == made[1]


def test_missing_tables_are_named_before_anything_is_measured(tmp_path, capsys):
    code, out, err = run(
        capsys, "reproduce", "amin2018", "--data", tmp_path / "none", "--offline", "-o", tmp_path
    )
    assert code == 2
    assert "E130 there is no wine.csv" in err
    assert "--data" in err
    assert out == ""
    assert not (tmp_path / "amin2018").exists()


def test_a_paper_that_is_not_there_is_refused_with_the_list(tmp_path, capsys):
    code, _, err = run(capsys, "reproduce", "amin2020", "-o", tmp_path)
    assert code == 2
    assert "E298 there is no reproduction of 'amin2020'. There are: amin2019" in err


def test_an_output_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "out").write_text("")
    code, _, err = run(capsys, "reproduce", "klsu2018", "--quick", "--offline", "-o", tmp_path / "out")
    assert code == 2
    assert "E409 cannot make the directory" in err
