"""The page sees files below one directory and makes new ones in it; no name leads out, none is replaced."""

from __future__ import annotations

import os

import pytest

from privcov.errors import InputError, OutputError
from privcov.web.places import Directory


@pytest.fixture
def home(tmp_path):
    inside = tmp_path / "served"
    (inside / "deep").mkdir(parents=True)
    (inside / "people.csv").write_text("a\n1\n")
    (inside / "deep" / "more.csv").write_text("a\n1\n")
    (inside / ".hidden.csv").write_text("a\n1\n")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "inner.csv").symlink_to(inside / "people.csv")
    (inside / "out").symlink_to(tmp_path)
    return Directory.of(inside)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "deep/../../secret.csv",
        "deep/../people.csv",
        "/etc/passwd",
        "link.csv",
        "out/secret.csv",
        "",
        ".",
        "deep",
        "people.csv\0",
        "..\\secret.csv",
        "no.csv",
        "a" * 2000,
        "file:people.csv",
    ],
)
def test_no_name_leads_out_of_the_directory(home, name):
    with pytest.raises(InputError):
        home.existing(name)


def test_names_below_it_are_found_and_links_that_stay_inside_are_followed(home):
    assert home.existing("people.csv").name == "people.csv"
    assert home.existing("deep/more.csv").name == "more.csv"
    assert home.existing("inner.csv").name == "people.csv"


def test_the_list_has_no_hidden_files_and_no_links_that_lead_out(home):
    assert home.files()["data"] == ["inner.csv", "people.csv", "deep/more.csv"]


@pytest.mark.parametrize(
    "name",
    [
        "../new.toml",
        "deep/new.toml",
        "/tmp/new.toml",
        ".new.toml",
        "new.txt",
        "out/new.toml",
        "new.toml\n",
        "a" * 200 + ".toml",
        "",
    ],
)
def test_a_new_file_has_a_plain_name_in_the_directory_itself(home, name):
    with pytest.raises((InputError, OutputError)):
        home.new(name, ending=".toml")


def test_what_is_there_is_not_a_new_file_even_as_a_dangling_link(home):
    (home.root / "old.toml").write_text("")
    (home.root / "dangling.toml").symlink_to(home.root / "nowhere.toml")
    for name in ("old.toml", "dangling.toml"):
        with pytest.raises(OutputError, match="already exists"):
            home.new(name, ending=".toml")
    assert home.new("new.toml", ending=".toml") == home.root / "new.toml"


def test_the_command_line_may_not_name_a_table_outside_either(home, tmp_path):
    with pytest.raises(InputError, match="--directory"):
        home.name_of(tmp_path / "secret.csv")
    assert home.name_of(os.path.join(home.root, "deep", "more.csv")) == "deep/more.csv"


def test_a_directory_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot open"):
        Directory.of(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a directory"):
        Directory.of(tmp_path / "file")


def test_every_file_that_can_be_released_is_in_the_list_and_nothing_else(home):
    names = [f"t{end}{packed}" for end in (".csv", ".tsv") for packed in ("", ".gz", ".zst")]
    for name in [*names, "t.parquet", "t.pq", "t.gz", "t.csv.zip", "t.json.gz"]:
        (home.root / name).write_text("a\n1\n")
    assert {name for name in home.files()["data"] if name[:2] == "t."} == {*names, "t.parquet", "t.pq"}
