"""The counts of the house are right on a small one whose counts are known by eye."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from house import House, cycles

ROOT = Path(__file__).parents[2]

FILES = {
    "__init__.py": 'from home.attic import up\nfrom home.cellar.wine import pour\n\n_HOMES = {"up": "home.attic"}\n',
    "attic.py": 'def up(steps: int) -> None:\n    """Go up."""\n    from home.cellar import wine\n\n    wine.pour(0)\n',
    "cellar/__init__.py": "",
    "cellar/wine.py": (
        '"""Wine."""\n\nimport numpy  # a comment beside code\nfrom home.cellar.shelf import SHELF\n\n\n'
        "# a comment alone\n"
        'def pour(glasses: int, *, spill: bool = False) -> int:\n    """Pour.\n\n    Parameters\n    ----------\n'
        '    glasses\n        How many.\n    spill : bool\n        Whether.\n    """\n'
        "    import scipy\n\n    return glasses\n"
    ),
    "cellar/shelf.py": "import typing\nfrom home import attic\n\nSHELF = attic\n",
    "cli/__init__.py": "",
    "cli/ring.py": "def ring() -> None:\n    from home.attic import up\n\n    up(1)\n",
}
LAYERS = """
[importlinter:contract:a]
type = layers
layers =
    home.cli
    home.cellar.wine | home.oven
"""


@pytest.fixture
def house(tmp_path: Path) -> Any:
    for name, text in FILES.items():
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "layers").write_text(LAYERS)
    return House(tmp_path / "home", tmp_path / "layers")


def test_modules_imports_layers_and_words_are_counted(house: Any) -> None:
    counts = house.counts()
    assert counts["modules"] == 7
    assert counts["files at the root"] == 2
    assert counts["rooms"] == 3
    # shelf is imported by wine alone; attic by __init__, shelf and ring; wine by __init__ and attic; ring by nobody.
    assert counts["modules with one importer"] == 1
    assert counts["imports inside functions"] == 1
    assert counts["imports inside functions, cli"] == 1
    assert counts["imports inside functions, other packages"] == 1
    assert counts["cycles of modules"] == 0  # the attic imports the cellar inside a function
    assert counts["cycles of rooms"] == 1
    assert house.details()["rooms that import each other"] == ["attic cellar"]
    assert house.outside_layers() == ["attic"]
    assert counts["public names with parameters"] == 2
    assert counts["of these explained"] == 1
    assert counts["docstrings"] == 2
    assert counts["of these one line"] == 1
    assert counts["comment lines per 100"] == round(100 * 2 / 17, 1)


def test_a_cycle_of_modules_is_seen(house: Any, tmp_path: Path) -> None:
    attic = tmp_path / "home/attic.py"
    attic.write_text("from home.cellar import wine\n" + attic.read_text())
    assert type(house)(house.source, house.contract).counts()["cycles of modules"] == 1


def test_the_figure_is_well_formed_and_shows_every_room(house: Any) -> None:
    figure = ET.fromstring(house.svg())
    assert {text.text for text in figure.iter("{http://www.w3.org/2000/svg}text")} >= {
        "attic",
        "cellar",
        "cli",
    }


def test_the_figures_of_another_tree_are_printed_as_json(house: House) -> None:
    command = [sys.executable, str(ROOT / "tools/house.py"), "--json", "--source", str(house.source)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["counts"] == {
        **house.counts(),
        "rooms in no layer": None,
    }  # it has no contract where one is looked for
    assert told["names"]["imports inside functions"] == ["home.attic → home.cellar.wine"]


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe has no signal there")
def test_a_reader_who_stops_early_sees_no_traceback(house: House) -> None:
    command = [sys.executable, str(ROOT / "tools/house.py"), "--source", str(house.source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        assert started.stderr.read() == ""


def test_no_modules_of_ours_need_each_other_to_be_imported() -> None:
    house = House(ROOT / "src/privcov", ROOT / ".importlinter")
    loading: dict[str, set[str]] = {name: set() for name in house.modules}
    for one in house.imports:
        if one.when == "loading":
            loading[one.source].add(one.target)
    assert len(loading) > 100
    assert cycles(loading) == []


def test_rooms_of_ours_import_each_other_in_one_direction_only() -> None:
    house = House(ROOT / "src/privcov", ROOT / ".importlinter")
    assert len(house.between()) > 20
    assert cycles(house.between()) == []


def test_of_calls_told_by_their_types_the_one_that_answers_is_asked_for_its_words(
    house: Any, tmp_path: Path
) -> None:
    attic = tmp_path / "home/attic.py"
    explained = attic.read_text().replace(
        "Go up.", "Go up.\n\n    Parameters\n    ----------\n    steps : int\n    "
    )
    attic.write_text(
        "from typing import overload\n\n\n@overload\ndef up(steps: int) -> None: ...\n\n\n" + explained
    )
    assert type(house)(house.source, house.contract).counts()["of these explained"] == 2


def test_the_parameters_of_every_public_name_are_explained() -> None:
    house = House(ROOT / "src/privcov", ROOT / ".importlinter")
    assert len(house.asking()) > 50
    assert house.unexplained() == []
