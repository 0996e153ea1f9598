"""The papers' tables: found, fetched from a real server in their publishers' form, and never measured when damaged."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import threading
import zipfile
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from privcov.errors import InputError
from privcov_lab.reproduce import datasets, homes
from privcov_lab.reproduce.datasets import Datasets, scaled

SMALL = ("wine", "airfoil", "adult", "pums")


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    """A web server over a directory; ``HOMES`` points to it instead of the world."""
    (tmp_path / "public").mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(tmp_path / "public"))

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for file, home in homes.HOMES.items():
        here = tuple(
            f"http://127.0.0.1:{server.server_port}/{address.rsplit('/', 1)[1]}" for address in home.addresses
        )
        monkeypatch.setitem(homes.HOMES, file, replace(home, addresses=here))
    yield tmp_path / "public"
    server.shutdown()


def zipped(**members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)
    return made.getvalue()


def publish(public, papers_data, name):
    """The table as its publisher gives it away, made from our copy."""
    if name == "wine":
        text = "\n".join((papers_data / "wine.csv").read_text().splitlines()[1:])
        (public / "wine.zip").write_bytes(zipped(wine__data=text, Index="", wine__names="words"))
    elif name == "airfoil":
        lines = (papers_data / "airfoil.csv").read_text().splitlines()[1:]
        text = "\n".join(line.replace(",", "\t") for line in lines)
        (public / "airfoil+self+noise.zip").write_bytes(zipped(airfoil_self_noise__dat=text))
    elif name == "pums":
        text = gzip.decompress((papers_data / "pums_california_10000.csv.gz").read_bytes()).decode()
        (public / "PUMS5extract10000.csv").write_text(text.replace("row_id,", '"",', 1))
    elif name == "adult":
        with gzip.open(papers_data / "adult.csv.gz", "rt") as file:
            records = list(csv.DictReader(file))
        parts = {"train": [], "test": ["|1x3 Cross validator"]}
        for record in records:
            end = "." if record["split"] == "test" else ""
            parts[record["split"]].append(", ".join(list(record.values())[:-1]) + end)
        texts = {split: "\n".join(lines) + "\n\n" for split, lines in parts.items()}
        (public / "adult.zip").write_bytes(zipped(adult__data=texts["train"], adult__test=texts["test"]))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.long
def test_a_missing_table_is_fetched_and_holds_the_same_numbers(name, publisher, papers_data, tmp_path):
    publish(publisher, papers_data, name)
    notes = []
    fresh = Datasets(tmp_path / "fresh")
    fresh.check([name], note=notes.append)
    ours, theirs = Datasets(papers_data).load(name), fresh.load(name)
    assert theirs.digest() == ours.digest()
    assert theirs.columns == ours.columns
    assert len(notes) == 1
    assert "fetching" in notes[0]
    fresh.check([name], note=notes.append)  # the second time it is there
    assert len(notes) == 1


@pytest.mark.slow
def test_covertype_and_digits_are_fetched_too(publisher, papers_data, tmp_path):
    forest = Datasets(papers_data).load("covtype")
    text = io.BytesIO()
    np.savetxt(text, np.column_stack([forest.rows, forest.labels]), fmt="%d", delimiter=",")
    packed = gzip.compress(text.getvalue(), compresslevel=1)
    (publisher / "covertype.zip").write_bytes(zipped(covtype__data__gz=packed))
    with np.load(papers_data / "mnist.npz") as digits:
        for part, name in (("train", "train"), ("test", "t10k")):
            images = b"\0" * 16 + digits[f"X_{part}"].tobytes()
            labels = b"\0" * 8 + digits[f"y_{part}"].tobytes()
            (publisher / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, compresslevel=1))
            (publisher / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, compresslevel=1))
    Datasets(tmp_path / "fresh").check(["covtype", "mnist", "mnist-test"])


def test_without_a_network_the_error_says_what_to_download_and_where_to_put_it(tmp_path, monkeypatch):
    nowhere = replace(homes.HOMES["wine.csv"], addresses=("http://127.0.0.1:9/wine.zip",))
    monkeypatch.setitem(homes.HOMES, "wine.csv", nowhere)
    with pytest.raises(InputError, match=r"E133 cannot fetch http://127.0.0.1:9/wine.zip: .* --data"):
        Datasets(tmp_path).check(["wine"])
    with pytest.raises(InputError, match=r"E130 there is no wine.csv in .*published by UCI"):
        Datasets(tmp_path, online=False).check(["wine"])
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_is_none_is_named_and_leaves_nothing(publisher, tmp_path):
    (publisher / "wine.zip").write_bytes(b"<html>moved</html>")
    with pytest.raises(InputError, match=r"E132 what UCI .* sent for wine.csv cannot be read"):
        Datasets(tmp_path / "fresh").check(["wine"])
    assert not (tmp_path / "fresh" / "wine.csv").exists()


@pytest.mark.parametrize("damage", ["one digit", "cut short", "empty", "other text", "bytes"])
def test_a_damaged_table_is_named_and_not_measured(damage, papers_data, tmp_path):
    text = (papers_data / "wine.csv").read_text()
    broken = {
        "one digit": text.replace("14.23", "14.24", 1),
        "cut short": text[:-200],
        "empty": "",
        "other text": "a,b\nx,y\n",
        "bytes": "\udcff\udcfe",
    }[damage]
    (tmp_path / "wine.csv").write_bytes(broken.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"E131 .*wine.csv does not hold the numbers it should. Delete it"):
        Datasets(tmp_path, online=False).check(["wine"])


def test_a_damaged_archive_is_named(papers_data, tmp_path):
    whole = (papers_data / "adult_onehot108.npz").read_bytes()
    (tmp_path / "adult_onehot108.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"E131 .*adult_onehot108.npz"):
        Datasets(tmp_path, online=False).check(["adult"])


def test_every_table_has_a_home_and_a_digest():
    assert {file for file, _, _ in datasets.FILES.values()} == set(homes.HOMES)
    assert all(len(digest) == 64 for _, _, digest in datasets.FILES.values())
    assert all(a.startswith("https://") for home in homes.HOMES.values() for a in home.addresses)


def test_scaled_rows_fill_the_unit_ball_and_a_constant_column_does_no_harm(papers_data):
    rows = scaled(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]))
    assert rows.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    wine = scaled(Datasets(papers_data).load("wine").rows)
    assert np.linalg.norm(wine, axis=1).max() == pytest.approx(1)


def test_tables_can_be_copied_by_hand(papers_data, tmp_path):
    shutil.copy(papers_data / "airfoil.csv", tmp_path)
    assert Datasets(tmp_path, online=False).load("airfoil").rows.shape == (1503, 6)
