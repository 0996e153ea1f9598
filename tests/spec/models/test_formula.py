"""A formula is read against the schema, and what second moments cannot answer is refused with the reason."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privcov as pc
from privcov.errors import ParameterError
from privcov.models.formula import Formula
from privcov.models.levels import Term

SCHEMA = pc.Schema.from_dict(
    {
        "columns": {
            "age": {"lower": 0, "upper": 100},
            "sex": {"levels": ["F", "M"]},
            "area": {"levels": ["n", "s", "w"]},
            "years-of-school": {"lower": 0, "upper": 20},
            "income": {"lower": 0, "upper": 200},
            "2nd.job": {"lower": 0, "upper": 1},
        }
    }
)


def parsed(text):
    formula = Formula.parse(text, SCHEMA)
    return formula.target, formula.terms, formula.intercept


@pytest.mark.parametrize(
    ("text", "terms", "intercept"),
    [
        ("income ~ age", ("age",), True),
        ("  income~age+sex ", ("age", "sex"), True),
        ("income ~ age + 1", ("age",), True),
        ("income ~ age - 1", ("age",), False),
        ("income ~ age-1", ("age",), False),
        ("income ~ age + 0", ("age",), False),
        ("income ~ 0 + age", ("age",), False),
        ("income ~ -1 + age", ("age",), False),
        ("income ~ 1", (), True),
        ("income ~ age - 1 + 1", ("age",), True),
        ("income ~ years-of-school", ("years-of-school",), True),
        ("income ~ years-of-school-1", ("years-of-school",), False),
        ("income ~ `years-of-school` + `age`", ("years-of-school", "age"), True),
        ("income ~ 2nd.job", ("2nd.job",), True),
        ("income ~ .", ("age", "sex", "area", "years-of-school", "2nd.job"), True),
        ("income ~ . - sex - area", ("age", "years-of-school", "2nd.job"), True),
        ("income ~ age + .-1", ("age", "sex", "area", "years-of-school", "2nd.job"), False),
    ],
)
def test_a_good_formula_says_what_it_says(text, terms, intercept):
    assert parsed(text) == ("income", terms, intercept)


CROSSED = pc.Schema.from_dict(
    {
        "columns": {
            **{name: {"lower": 0, "upper": 9} for name in ("a", "b", "c", "y")},
            "sex": {"levels": ["F", "M"]},
            "area": {"levels": [1, 2, 3]},
        },
        "derived": {
            **{"ab": "a * b", "cb": "c * b", "ac": "c*a", "abc": "a*b*c"},
            **{"a_m": "a * (sex == 'M')", "a_2": "a * (area == 2)", "a_3": "(area == 3) * a"},
            "m_2": "(sex == 'M') * (area == 2)",
            "m_3": "(sex == 'M') * (area == 3)",
            "a2_b": "a^2 * b",
            "a2": "a^2",
        },
    }
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("y ~ a*b", "y ~ a + b + ab"),
        ("y~b*a-1", "y ~ b + a + ab - 1"),
        ("y ~ a*b - a", "y ~ b + ab"),
        ("y ~ a*b - a:b", "y ~ a + b"),
        ("y ~ a*b + c*b", "y ~ a + b + ab + c + cb"),
        ("y ~ a + a*b", "y ~ a + b + ab"),
        ("y ~ a*b*c", "y ~ a + b + c + ab + ac + cb + abc"),
        ("y ~ a*b*c - a:b:c", "y ~ a + b + c + ab + ac + cb"),
        ("y ~ (a + b)*c", "y ~ a + b + c + ac + cb"),
        ("y ~ (a + b + c)^2", "y ~ a + b + c + ab + ac + cb"),
        ("y ~ (a + b + c)**2", "y ~ a + b + c + ab + ac + cb"),
        ("y ~ (a + b + c)^3", "y ~ a + b + c + ab + ac + cb + abc"),
        ("y ~ (a + b + c)^16 - a*b", "y ~ c + ac + cb + abc"),
        ("y ~ (a + b):c", "y ~ ac + cb"),
        ("y ~ ((a + b) + (c))", "y ~ a + b + c"),
        ("y ~ (a + b + c - c)^2", "y ~ a + b + ab"),
        ("y ~ a*sex", "y ~ a + sex + a_m"),
        ("y ~ a*sex[M]", "y ~ a + sex[M] + a_m"),
        ("y ~ a*area", "y ~ a + area + a_2 + a_3"),
        ("y ~ a + area + a:area", "y ~ a + area + a_2 + a_3"),
        ("y ~ sex*area", "y ~ sex + area + m_2 + m_3"),
        ("y ~ a*sex + area*sex", "y ~ a + sex + a_m + area + m_2 + m_3"),
        ("y ~ I(a^2)*b", "y ~ a2 + b + a2_b"),
    ],
)
def test_a_cross_stands_for_its_columns_and_their_products(text, same):
    assert str(Formula.parse(text, CROSSED)) == same


def test_a_cross_names_every_line_that_is_to_be_declared():
    def refused(text, schema=CROSSED):
        with pytest.raises(ParameterError) as caught:
            Formula.parse(text, schema)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    told = refused("y ~ b*sex + c*area")
    lines = told.partition("release again: ")[2].split("; ")
    expected = ["b * (sex == 'M')", "c * (area == 2)", "c * (area == 3)"]
    assert lines == [
        f'{name} = "{text}"' for name, text in zip(["b_sex_M", "c_area_2", "c_area_3"], expected, strict=True)
    ]
    # What is declared so is found.
    about = {line.partition(" = ")[0]: line.partition(" = ")[2].strip('"') for line in lines}
    more = pc.Schema.from_dict(
        {
            "columns": {n: {"lower": 0, "upper": 9} for n in "bcy"}
            | {"sex": {"levels": ["F", "M"]}, "area": {"levels": [1, 2, 3]}},
            "derived": about,
        }
    )
    assert (
        str(Formula.parse("y ~ b*sex + c*area", more))
        == "y ~ b + sex + b_sex_M + c + area + c_area_2 + c_area_3"
    )
    assert "interactions with area need one of its levels" in refused("y ~ b:area")
    assert refused("y ~ (.)^2").endswith("more")
    started = time.process_time()
    wide = pc.Schema.from_dict({"columns": {f"x{i}": {"lower": 0, "upper": 1} for i in range(200)}})
    assert "at most 5,000 terms" in refused("x0 ~ .^2", wide)
    assert "at most 5,000 terms" in refused("x0 ~ (.)^9", wide)
    assert time.process_time() - started < 2


def test_an_indicator_of_missing_numbers_is_a_term_of_its_own_and_that_of_levels_is_a_level():
    bounds = {"lower": 0, "upper": 1}
    kinds = {"age": bounds, "y": bounds, "sex": {"levels": ["F", "M"]}}
    schema = pc.Schema.from_dict(
        {"columns": {n: {**about, "missing": "indicator"} for n, about in kinds.items()}}
    )

    def named(text):
        formula = Formula.parse(text, schema)
        assert Formula.parse(str(formula), schema) == formula
        return [schema.features[place].name for place in formula.features(schema)]

    assert named("y ~ age") == ["age"]
    assert named("y ~ age + `age[missing]`") == ["age", "age[missing]"]
    assert named("y ~ .") == ["age", "age[missing]", "sex[M]", "sex[missing]"]
    assert named("y ~ . - `age[missing]`") == ["age", "sex[M]", "sex[missing]"]
    assert named("y ~ sex - 1") == ["sex[F]", "sex[M]", "sex[missing]"]
    for text in ("`y[missing]` ~ age", "y ~ `sex[missing]`"):
        with pytest.raises(ParameterError, match="E231"):
            Formula.parse(text, schema)


def test_a_formula_prints_as_one_that_reads_back():
    for text in ("income ~ age + sex", "income ~ age - 1", "income ~ 1"):
        assert str(Formula.parse(text, SCHEMA)) == text


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("income", "E230", "one ~"),
        ("", "E230", "one ~"),
        ("income ~ age ~ sex", "E230", "one ~"),
        ("income ~", "E230", "single"),
        ("~ age", "E230", "left side"),
        ("income + age ~ sex", "E230", "left side"),
        ("income ~ age +", "E230", "single"),
        ("income ~ age + + sex", "E230", "single"),
        ("income ~ age sex", "E230", "single"),
        ("income ~ 0", "E230", "a term or an intercept"),
        ("income ~ age - .", "E230", "taken away"),
        (None, "E230", "text"),
        ("income ~ " + "age + " * 9000, "E230", "text"),
        ("income ~ height", "E231", "height"),
        ("wage ~ age", "E231", "wage"),
        ("income ~ age2", "E231", "age2"),
        ("income ~ Age", "E231", "Age"),
        ("income ~ 2", "E231", "'2'"),
        ("income ~ age-sex2", "E231", "sex2"),
        ("income ~ age:sex", "E232", "interactions"),
        ("income ~ age*sex", "E232", "interactions"),
        ("income ~ age^2", "E232", "interactions"),
        ("income ~ log(age)", "E233", "functions"),
        ("log(income) ~ age", "E233", "functions"),
        ("income ~ age / sex", "E233", "operators"),
        ("income ~ age | sex", "E233", "operators"),
        ("income ~ `age", "E230", "backtick"),
        ("income ~ age(sex)", "E233", "functions"),
        ("income ~ (age", "E230", "single"),
        ("income ~ age)", "E230", "single"),
        ("income ~ ()", "E230", "single"),
        ("income ~ (age - age)", "E230", "single"),
        ("income ~ age*", "E230", "single"),
        ("income ~ *age", "E230", "single"),
        ("income ~ age*0", "E230", "no numbers"),
        ("income ~ (age + sex)^1", "E230", "from 2 to 16"),
        ("income ~ (age + sex)^", "E230", "from 2 to 16"),
        ("income ~ (age + sex)^" + "9" * 5000, "E230", "from 2 to 16"),
        ("income ~ age**2", "E232", "I(age^2)"),
        ("income ~ (age + age)^2", "E235", "twice"),
        ("income ~ " + "(" * 4000 + "age" + ")" * 4000, "E230", "within each other"),
        ("income ~ income", "E234", "also a term"),
        ("income ~ age + income", "E234", "also a term"),
        ("sex ~ age", "E234", "categorical"),
        ("income ~ age + age", "E235", "twice"),
        ("income ~ . + age", "E235", "twice"),
        ("income ~ age - sex", "E235", "never added"),
        ("income ~ age - sex[F]", "E235", "never added"),
        ("income ~ sex[F] + sex[F]", "E235", "twice"),
        ("income ~ sex[X]", "E231", "no level 'X'"),
        ("income ~ sex[]", "E231", "no level ''"),
        ("income ~ age[1]", "E231", "no levels"),
        ("income ~ nobody[1]", "E231", "nobody"),
        ("income ~ sex[F", "E233", "operators"),
        ("income ~ C(age)", "E233", "categorical"),
        ("income ~ C(nobody)", "E231", "nobody"),
        ('income ~ C(sex, Treatment("X"))', "E231", "no level 'X'"),
        ("income ~ C(sex, Sum)", "E233", "functions"),
        ("sex[F] ~ sex[M]", "E234", "also a term"),
        ("area[n|s] ~ age", "E234", "categorical"),
        ("C(sex) ~ age", "E230", "left side"),
    ],
)
def test_a_bad_formula_is_refused_with_its_reason(text, code, reason):
    with pytest.raises(ParameterError, match=code) as caught:
        Formula.parse(text, SCHEMA)
    assert reason in str(caught.value)
    assert caught.value.remedy


def names(text):
    return [SCHEMA.features[i].name for i in Formula.parse(text, SCHEMA).features(SCHEMA)]


def test_a_categorical_term_drops_its_first_level_when_there_is_an_intercept():
    assert names("income ~ sex + age + area") == ["sex[M]", "age", "area[s]", "area[w]"]


def test_without_an_intercept_the_first_categorical_term_keeps_every_level():
    assert names("income ~ area - 1") == ["area[n]", "area[s]", "area[w]"]
    assert names("income ~ age + area + sex - 1") == ["age", "area[n]", "area[s]", "area[w]", "sex[M]"]


ODD = (
    "größe",
    "Household Income (USD)",
    "income>50K",
    "a`b",
    "``",
    "a[b]",
    "y ~ x + 1",
    "+",
    "-",
    "-1",
    ".",
    "1",
    "0",
    'say "a\\b"',
    "last, first",
    "東京都",
    "हिन्दी",
    "שם",
    "smile😀",
    "x" * 128,
    "a-b",
    "a",
    "b",
)


def odd_schema(names=ODD):
    return pc.Schema.from_dict({"columns": {name: {"lower": 0, "upper": 1} for name in names}})


def test_any_name_can_be_written_in_a_formula():
    schema = odd_schema()
    for name in ODD:
        others = tuple(other for other in ODD if other != name)
        quoted = ["`" + other.replace("`", "``") + "`" for other in (name, *others)]
        made = Formula.parse(f"{quoted[0]} ~ " + " + ".join(quoted[1:]), schema)
        assert (made.target, made.terms, made.intercept) == (name, others, True)
        assert Formula.parse(str(made), schema) == made
    plain = Formula.parse("a ~ `Household Income (USD)`+größe+`-1`-größe + 東京都+smile😀+हिन्दी", schema)
    assert plain.terms == ("Household Income (USD)", "-1", "東京都", "smile😀", "हिन्दी")


@settings(max_examples=100, deadline=None)
@given(
    names=st.lists(
        st.text(st.sampled_from("ab-`~+. 01()é"), min_size=1, max_size=5).filter(
            lambda name: name.strip() == name
        ),
        min_size=2,
        max_size=6,
        unique=True,
    ),
    intercept=st.booleans(),
)
def test_a_printed_formula_of_any_names_reads_back(names, intercept):
    schema = odd_schema(names)
    target, *terms = (Term(column=name) for name in names)
    made = Formula(explained=target, parts=tuple(terms), intercept=intercept)
    if not intercept and "1" in names:
        return  # a column named 1 takes the place of the constant in "- 1"
    assert Formula.parse(str(made), schema) == made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("income ~ sex[M]", ["sex[M]"]),
        ("income~age-1+sex[ F ]", ["age", "sex[F]"]),
        ('income ~ C(area, Treatment("s"))', ["area[n]", "area[w]"]),
        ("income ~ age + C(area, Treatment(reference='w')) - 1", ["age", "area[n]", "area[s]", "area[w]"]),
        ("income ~ C(area)", ["area[s]", "area[w]"]),
        ("income ~ . -C(area)", ["age", "sex[M]", "years-of-school", "2nd.job"]),
        ("income ~ area - area[w]", ["area[s]"]),
        ('income ~ C(area, Treatment("w")) - area[n]', ["area[s]"]),
        ('income ~ area[s|"w"] + age', ["area[s|w]", "age"]),
        ("income ~ area - area[s] - area[w] + area[w | s]", ["area[s|w]"]),
        ("sex[F] ~ area[`n`]", ["area[n]"]),
        ("sex[F] ~ . - age", ["area[s]", "area[w]", "years-of-school", "income", "2nd.job"]),
    ],
)
def test_levels_are_chosen_dropped_and_merged_in_a_formula(text, made):
    formula = Formula.parse(text, SCHEMA)
    assert [one.name for one in formula.regressors(SCHEMA)] == made
    assert Formula.parse(str(formula), SCHEMA) == formula


def test_a_level_that_is_a_number_is_named_by_any_writing_of_it():
    schema = pc.Schema.from_dict({"columns": {"s": {"levels": [1, 2]}, "y": {"lower": 0, "upper": 1}}})
    for text in ("y ~ s[2]", "y ~ s[2.0]", 'y ~ s["2"]', "y ~ C(s, Treatment(1))"):
        assert [one.name for one in Formula.parse(text, schema).regressors(schema)] == ["s[2]"]


def test_two_spellings_of_one_letter_are_one_name_in_a_formula():
    schema = odd_schema(["y", "gr\u00f6\u00dfe"])
    assert Formula.parse("y ~ gro\u0308\u00dfe", schema).terms == ("größe",)
    assert Formula.parse("y ~ ` gro\u0308\u00dfe `", schema).terms == ("größe",)


@pytest.mark.parametrize("text", ["y ~ `a", "`y ~ a", "y ~ `a``", "y ~ a`"])
def test_a_backtick_that_is_not_closed_is_refused(text):
    with pytest.raises(ParameterError, match=r"E230.*backtick"):
        Formula.parse(text, odd_schema(["y", "a"]))


HOSTILE = {
    "dashes": "y ~ " + "-" * 19_000,
    "dashes and letters": "y ~ " + "a-" * 9_500,
    "names of many dashes": "y ~ " + "a-a-a-" * 3_000 + "b",
    "digits and dashes": "y ~ " + "1-" * 9_500,
    "one long name": "y ~ " + "a" * 19_000,
    "backticks": "y ~ " + "`" * 19_001,
    "open backticks": "y ~ " + "` " * 9_499 + "`",
    "deep brackets": "y ~ " + "(" * 9_000 + ")" * 9_000,
    "plus signs": "y ~ " + "+" * 19_000,
    "tildes": "~" * 19_000,
    "blanks": "y ~ " + " " * 19_000 + "(",
    "the same name": "y ~ " + "a + " * 4_000 + "a",
    "in and out": "y ~ ." + " - c1 + c1" * 1_900,
    "open choices": "y ~ " + "a[" * 9_500,
    "a long choice": "y ~ a[" + "x " * 9_000 + "]",
    "many choices": "y ~ a[" + "x|" * 9_000 + "]",
    "open factors": "y ~ " + "C(" * 9_500,
    "factors and dashes": "y ~ " + "-C" * 9_000 + "(a",
    "combining marks": "y ~ a" + "\u0301\u0323" * 9_000,
}


@pytest.fixture(scope="module")
def wide():
    return odd_schema(["y", "a", "-".join("a" * 64), *(f"c{i}" for i in range(8_000))])


@pytest.mark.parametrize("case", HOSTILE)
def test_a_formula_is_read_in_a_time_proportional_to_its_length(case, wide):
    """Nothing takes a second, whatever the names are; 19,000 dashes once took 18."""
    began = time.process_time()
    with contextlib.suppress(ParameterError):
        Formula.parse(HOSTILE[case], wide)
    assert time.process_time() - began < 1.0


def test_a_formula_of_every_column_of_a_wide_release_is_placed_in_no_time(wide):
    began = time.process_time()
    places = Formula.parse("y ~ .", wide).features(wide)
    assert time.process_time() - began < 1.0
    assert places == tuple(range(2, 8_004))
