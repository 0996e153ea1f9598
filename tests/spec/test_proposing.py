"""``schema init``: from any header a template that reads back, and a header that has two readings is refused."""

from __future__ import annotations

import csv
import io
import re
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcov.cli import main
from privcov.errors import InputError
from privcov.schema import Schema
from privcov.schema.dialect import Dialect
from privcov.schema.names import canonical, fault
from privcov.schema.template import template
from privcov.table import glance
from privcov.table.types import propose

ODD = ["größe", "Household Income (USD)", "income>50K", 'say "a"', "back\\slash", "tick`tock", "a[b]", "a.b"]
ODD += ["last, first", "x = 1 # no", "'single'", "東京都の人口", "שם", "smile😀", "<b>", "n" * 128]


def filled(text):
    """A template with every blank filled, by nothing but a pattern."""
    text = re.sub(r"(?m)^lower =(?= )", "lower = 0", text)
    text = re.sub(r"(?m)^upper =(?= )", "upper = 9", text)
    return re.sub(r"(?m)^levels =(?= )", 'levels = ["a"]', text)


def read_back(tmp_path, path, **said):
    seen = glance(path, said)
    made = tmp_path / "s.toml"
    made.write_text(filled(template(seen.columns, seen.file)), encoding="utf-8")
    schema = Schema.read(made)
    assert [column.name for column in schema.columns] == list(seen.columns)
    assert schema.file == seen.file
    return schema


def a_file(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def written(names, dialect=None, **words):
    made = io.StringIO()
    csv.writer(made, delimiter=dialect or ",", lineterminator="\n", **words).writerow(names)
    return made.getvalue()


HEADERS = [
    *([name, "b"] for name in ODD if name != "x = 1 # no"),
    ["x = 1 # no"],
    ODD,
    ["größe", "Household Income (USD)", "income>50K"],
    [" age ", "\tsex\t", "gro\u0308\u00dfe"],
    ["sex", "sex[F]"],
    ["lower", "upper", "levels", "file", "columns"],
]


@pytest.mark.parametrize("names", HEADERS, ids=lambda names: names[0][:20] + f" {len(names)}")
def test_a_template_of_any_header_reads_back_once_it_is_filled(names, tmp_path):
    schema = read_back(tmp_path, a_file(tmp_path, written(names) + "\n"))
    assert len(schema.columns) == len(names)
    as_parquet = tmp_path / "t.parquet"
    pq.write_table(pa.table([[1.0]] * len(names), names=names), as_parquet)
    assert [c.name for c in read_back(tmp_path, as_parquet).columns] == [c.name for c in schema.columns]


LETTERS = st.characters(exclude_categories=["C", "Z", "Nd"]) | st.sampled_from(" ,;|'\"`\\[]")


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(
        st.text(LETTERS, min_size=1, max_size=6).filter(lambda name: fault(name) is None),
        min_size=2,
        max_size=5,
    ),
    separator=st.sampled_from(",;\t|"),
)
def test_every_header_gives_a_template_that_reads_back_unless_a_name_is_there_twice(
    names, separator, tmp_path_factory
):
    place = tmp_path_factory.mktemp("any")
    path = a_file(place, written(names, separator, quoting=csv.QUOTE_ALL))
    if len({canonical(name) for name in names}) < len(names):
        with pytest.raises(InputError, match="E103"):
            read_back(place, path)
    else:
        assert len(read_back(place, path).columns) == len(names)


def test_ten_thousand_columns_take_seconds(tmp_path):
    names = [f"Größe {i}, m" for i in range(10_000)]
    path = a_file(tmp_path, written(names) + written(["1.5"] * 10_000) * 20)
    began = time.process_time()
    assert len(read_back(tmp_path, path).columns) == 10_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"age,sex,income", {}),
        (b"age", {}),
        (b"age;sex;income", {"separator": ";", "decimal": ","}),
        (b"age\tsex\tincome", {"separator": "\t"}),
        (b"age|sex|income", {"separator": "|"}),
        (b"Income, net;age;sex;job", {"separator": ";", "decimal": ","}),
        (b'"a;b","c;d"', {}),
        (b'"a,b";"c,d"', {"separator": ";", "decimal": ","}),
        (b"'a,x';'b';'c'", {"separator": ";", "decimal": ",", "quote": "'"}),
        (b"mother's age,father's age", {}),
        ("größe,alter".encode(), {}),
        (b"\xef\xbb\xbfage,sex", {}),
        ("größe;alter".encode("latin-1"), {"separator": ";", "decimal": ",", "encoding": "latin-1"}),
        ("größe,alter".encode("utf-16"), {"encoding": "utf-16"}),
        (b"\xfe\xff" + "größe\talter".encode("utf-16-be"), {"separator": "\t", "encoding": "utf-16"}),
    ],
)
def test_a_header_line_says_how_the_file_is_written(line, words):
    assert propose(line).words() == words


@pytest.mark.parametrize(
    ("line", "code", "seen"),
    [
        (b"a;b,c", "E162", "1 comma and 1 semicolon"),
        (b"a;b;c,d,e", "E162", "2 commas and 2 semicolons"),
        (b"a;b;c;d,e,f", "E162", "2 commas and 3 semicolons"),
        (b"a\tb|c", "E162", "1 tab and 1 bar"),
        (b'height 6",b', "E107", "not closed"),
        (b"a\0,\0b\0", "E164", "UTF-16"),
        (b"gr\x94\xe1e,b", "E164", "Latin-1"),
    ],
)
def test_a_header_with_two_readings_is_refused_with_what_was_seen(line, code, seen):
    with pytest.raises(InputError, match=code) as caught:
        propose(line)
    assert seen in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "said", [{"encoding": "ebcdic"}, {"quote": "["}, {"separator": "x"}, {"decimal": "-"}]
)
def test_a_word_that_no_dialect_has_is_refused(said):
    with pytest.raises(InputError, match="E140"):
        propose(b"a,b", said)


@pytest.mark.parametrize(
    ("header", "code", "seen"),
    [
        ("a,b,a\n1,2,3\n", "E103", "columns 1 and 3 of the header of t.csv"),
        ("a,b, a ,a\n", "E103", "columns 1, 3 and 4"),
        ("gr\u00f6\u00dfe,b,gro\u0308\u00dfe\n", "E103", "columns 1 and 3"),
        ("a,,b\n", "E163", "column 2 of 3"),
        ('a,b,""\n', "E163", "column 3 of 3"),
        (",\n", "E163", "column 1 of 2"),
        ("a,secret\u202egnp\n", "E121", "column 2 of 2 of the header of t.csv has the character U+202E"),
        ("a,secret\x1b[2J\n", "E121", "U+001B"),
        ("a," + "secret" * 50 + "\n", "E121", "300 characters"),
        ("a,(Intercept)\n", "E121", "the constant column"),
        ("secret,73.5\n", "E101", "looks like a row of data"),
        ("secret;7,5;x\n", "E101", "looks like a row of data"),
        ("\n1,2\n", "E101", "first line is empty"),
        (b"\x1f\x8b\x08\0secret", "E117", "gzip"),
        (b"PAR1\x15\0", "E118", "Parquet"),
    ],
)
def test_a_header_that_is_none_is_refused_by_place_and_never_repeated(header, code, seen, tmp_path):
    with pytest.raises(InputError, match=code) as caught:
        read_back(tmp_path, a_file(tmp_path, header))
    assert seen in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_tsv_has_tabs_or_is_refused(tmp_path):
    schema = read_back(tmp_path, a_file(tmp_path, "a, b\tc\n", "t.tsv"))
    assert ([c.name for c in schema.columns], schema.file) == (["a, b", "c"], Dialect(separator="\t"))
    assert read_back(tmp_path, a_file(tmp_path, "a\n1\n", "t.tsv")).file == Dialect(separator="\t")
    with pytest.raises(InputError, match=r"E162.*2 commas and no tab"):
        glance(a_file(tmp_path, "a,b,c\n", "t.tsv"))
    assert list(glance(a_file(tmp_path, "a,b,c\n", "t.tsv"), {"separator": ","}).columns) == ["a", "b", "c"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_types_are_seen_in_the_files_own_dialect(encoding, end, tmp_path):
    lines = ["größe;stadt;alter", "1,5;Köln;30", "-2,25;Ürdingen;41", "0,5;Köln;", "7;;"]
    path = a_file(tmp_path, end.join([*lines, ""]).encode(encoding))
    seen = glance(path)
    assert seen.columns == {"größe": "numeric", "stadt": "text", "alter": "numeric"}
    assert seen.file.decimal == "."  # a suggestion is not a declaration
    assert '# decimal = ","' in template(seen.columns, seen.file)
    assert glance(path, {"decimal": ","}).columns == seen.columns
    assert read_back(tmp_path, path, decimal=",").file.decimal == ","
    assert glance(path, {"decimal": "."}).columns["größe"] == "text"
    grouped = a_file(tmp_path, "a;b\n1.234,5;1\n2.000,25;2\n")
    assert glance(grouped).columns["a"] == "text"
    assert glance(grouped, {"decimal": ",", "thousands": "."}).columns["a"] == "numeric"


def test_the_command_line_says_what_was_seen_and_takes_a_word_for_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a_file(tmp_path, "Name, first;age\nx;1\n")
    assert main(["schema", "init", "t.csv"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "E162" in err
    assert "--separator" in err
    assert main(["schema", "init", "t.csv", "--separator", "semicolon", "-o", "t.toml"]) == 0
    text = (tmp_path / "t.toml").read_text(encoding="utf-8")
    assert '[columns."Name, first"]' in text
    assert 'separator = ";"' in text
    (tmp_path / "t.toml").write_text(filled(text).replace("# decimal", "decimal"), encoding="utf-8")
    capsys.readouterr()
    assert main(["schema", "check", "t.toml"]) == 0
    assert "File format: cells separated by semicolons, decimal comma." in capsys.readouterr().out
    assert main(["schema", "init", "t.csv", "--separator", ";", "--encoding", "ebcdic"]) == 2
    assert "E140" in capsys.readouterr().err
    a_file(tmp_path, 'height 6",b\n')
    assert main(["schema", "init", "t.csv", "--quote", "none"]) == 0
    assert '[columns."height 6\\""]' in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_of_dates_gets_blanks_for_dates(kind, tmp_path):
    texts = ["2024-02-29", "", "2023-12-31T18:30", "n/a", "2020-01-01"]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text(
            "visit,sex,born\n" + "".join(f"{text},F,31.12.2024\n" for text in texts), encoding="utf-8"
        )
    else:
        moments = pa.array([0, None, 10**9], pa.timestamp("s"))
        pq.write_table(pa.table({"visit": moments, "sex": ["F"] * 3, "born": ["31.12.2024"] * 3}), path)
    seen = glance(path)
    assert seen.columns == {"visit": "date", "sex": "text", "born": "text"}
    text = template(seen.columns)
    assert "2024-02" not in text  # no cell gets into a template
    levels = re.sub(r"(?m)^levels =(?= )", 'levels = ["a"]', text)
    dates = levels.replace("lower =  ", 'lower = "2020-01-01"').replace("upper =  ", 'upper = "2024-12-31"')
    (made := tmp_path / "s.toml").write_text(dates + '[derived]\nyear = "year(visit)"\n', encoding="utf-8")
    assert [column.name for column in Schema.read(made).columns] == ["sex", "born", "year"]
