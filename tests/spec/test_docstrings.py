"""Every public name is documented in full, in NumPy's style, and what is said agrees with the signature.

Public is what ``privcov`` exports, what the reference lists beside it, the repairs, and the classes of what these
return. The examples are run module by module (tests/e2e/test_documents.py); here it is asked that there is one.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import sklearn.exceptions

import privcov
from privcov import errors

MORE = {
    "privcov.models.ols": ["Fit"],
    "privcov.models.ridge": ["RidgeFit", "RidgePath"],
    "privcov.models.pca": ["PCAFit", "principal_angles"],
    "privcov.models.association": ["correlation", "partial_correlation", "precision", "mahalanobis"],
    "privcov.models.interop": ["to_pandas", "to_polars", "to_latex"],
    "privcov.planning.plan": ["Plan"],
    "privcov.planning.forecast": ["Forecast"],
    "privcov.releases.certificate": ["Certificate"],
    "privcov.verification.verify": ["Verdict"],
    "privcov.releases.keyfiles": ["write", "read_private", "read_public"],
    "privcov.releases.signing": ["keygen"],
    "privcov.engines": ["Local", "Dask", "Spark"],
    "privcov.audit": ["audit"],
    "privcov.accounting": [
        "gaussian_delta",
        "gaussian_mu",
        "zcdp_to_approx",
        "approx_to_zcdp",
        "pure_to_zcdp",
    ],
    "privcov.noise.randomness": ["rehearsal"],
}
"""What users meet beside the names of the package itself; other modules may document themselves more briefly."""
NAMES = [f"privcov.{name}" for name in privcov._HOMES]
NAMES += [f"{module}.{name}" for module, listed in MORE.items() for name in listed]
NAMES += [f"privcov.unbounded.{name}" for name in import_module("privcov.unbounded").__all__]
NAMES += [f"privcov.repair.{name}" for name in ("repair", "Observed", "PublicFacts", "Structure")]
NAMES += ["privcov.engines.engine_named", "privcov.ledger.Request"]

NOT_FOR_USERS = {
    "Uncertainty",  # the working of a table of coefficients, which ``Fit`` shows in original units
    "NoiseLaw",  # read by models and repair; a certificate tells its name and its scale
    "Rehearsal",  # made by ``rehearsal``, and only ever passed on
    "Recipe",  # the working of derived columns, which readers follow
    "Numeric",  # made by a schema of what its file declares
    "Categorical",  # the same
}
ORDER = "in another order than the signature"
HOMES_OF_ERRORS = (errors, builtins, sklearn.exceptions, np.linalg)
CALLED_BY_US = {
    "check",
    "answers",
    "joined",
    "reveal_to_key_file",
}  # a user passes the object on and never calls these


@dataclass(frozen=True)
class Documented:
    """A function, method, property or class, and the docstring that speaks of it."""

    name: str
    thing: Any
    owner: type | None = None

    @property
    def text(self) -> str:
        return inspect.getdoc(self.thing) or _inherited(self.owner, self.name.rpartition(".")[2]) or ""

    @property
    def sections(self) -> dict[str, str]:
        return sections(self.text)


def _inherited(owner: type | None, name: str) -> str | None:
    """The docstring of the method of a base class that this one overrides."""
    for base in owner.__mro__[1:] if owner is not None else ():
        if name in vars(base) and (said := inspect.getdoc(_plain(vars(base)[name]))):
            return said
    return None


def sections(text: str) -> dict[str, str]:
    """The parts of a NumPy docstring by their titles; what stands before the first is under ""."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> dict[str, tuple[str, str]]:
    """Name by name of a section: its type, and what is said of it."""
    found = {}
    for head, body in re.findall(r"^(\S.*)\n((?:(?: {4}.*)?\n)*)", section.strip("\n") + "\n", re.MULTILINE):
        names, _, kind = head.partition(" : ")
        for name in names.split(", "):
            found[name] = kind, body.strip()
    return found


def _plain(thing: Any) -> Any:
    """The function in a classmethod, a property or a cached property; anything else as it is."""
    if isinstance(thing, staticmethod | classmethod):
        return thing.__func__
    if isinstance(thing, property):
        return thing.fget
    return thing.func if isinstance(thing, cached_property) else thing


def _ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("privcov")


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class has from us, as they stand in the class."""
    seen = set()
    for base in owner.__mro__:
        for name, thing in vars(base).items() if _ours(base) else ():
            if not name.startswith("_") and name not in seen and inspect.isfunction(_plain(thing)):
                seen.add(name)
                yield name, thing


def _returned(thing: Any) -> Iterator[type]:
    """The classes of ours in what a function returns."""
    try:
        hints = typing.get_type_hints(thing)
    except NameError:  # a frame of a library that is imported on use
        return
    yield from _named([hints.get("return")])


def _classes(owner: type) -> Iterator[type]:
    """The classes of ours in the fields of a dataclass."""
    hints = typing.get_type_hints(owner)
    yield from _named([hints[field.name] for field in fields(owner) if not field.name.startswith("_")])


def _named(waiting: list[Any]) -> Iterator[type]:
    """The classes of ours that some annotations name."""
    while waiting:
        hint = waiting.pop()
        if inspect.isclass(hint) and _ours(hint):
            yield hint
        waiting += typing.get_args(hint)


def _walk() -> Iterator[tuple[str, Any]]:
    """Every public name, and the class of everything that one of them returns."""
    waiting = []
    for name in NAMES:
        module, _, last = name.rpartition(".")
        waiting.append((name, getattr(import_module(module), last)))
    seen: set[int] = set()
    while waiting:
        name, thing = waiting.pop(0)
        if id(thing) in seen or thing.__name__ in NOT_FOR_USERS:
            continue
        seen.add(id(thing))
        yield name, thing
        made = [_plain(each) for _, each in members(thing)] if inspect.isclass(thing) else [thing]
        met = [each for one in made for each in _returned(one)]
        if is_dataclass(thing):  # what is beside a result is part of it
            met += [each for each in _classes(thing) if each.__module__ == thing.__module__]
        waiting += [(each.__name__, each) for each in met]


PUBLIC = dict(_walk())
CLASSES = [Documented(name, thing) for name, thing in PUBLIC.items() if inspect.isclass(thing)]
CALLS = [Documented(name, thing) for name, thing in PUBLIC.items() if not inspect.isclass(thing)]
CALLS += [
    Documented(f"{owner.name}.{name}", _plain(thing), owner.thing)
    for owner in CLASSES
    for name, thing in members(owner.thing)
    if not isinstance(thing, property | cached_property)
]
PROPERTIES = [
    Documented(f"{owner.name}.{name}", _plain(thing), owner.thing)
    for owner in CLASSES
    for name, thing in members(owner.thing)
    if isinstance(thing, property | cached_property)
]


def arguments(thing: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a call by the names that a docstring gives them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = inspect.signature(thing).parameters.values()
    return {stars.get(p.kind, "") + p.name: p for p in given if p.name not in ("self", "cls")}


def _default_is_said(given: inspect.Parameter, kind: str, home: dict[str, Any]) -> bool:
    """A default stands behind the type: ``float, default 0.95``; where it is None, ``optional``."""
    if given.default is inspect.Parameter.empty:
        return "default" not in kind and "optional" not in kind
    if given.default is None:
        return kind.endswith("optional")
    said = kind.rpartition("default ")[2]
    if repr(given.default) == "<factory>":  # of a dataclass: it is made anew each time
        return said in ("{}", "[]")
    if said.isidentifier() and said not in ("True", "False"):  # a constant of the module
        return (
            home.get(said) is given.default or getattr(home.get(said), "__wrapped__", None) is given.default
        )
    try:
        return bool(ast.literal_eval(said) == given.default)
    except (ValueError, SyntaxError):
        return said == str(given.default)


def faults_of_parameters(thing: Any, listed: dict[str, tuple[str, str]]) -> list[str]:
    """What is missing, invented, out of order, without a type, a word or its default."""
    wanted, home = arguments(thing), vars(sys.modules[thing.__module__])
    found = [f"missing: {name}" for name in wanted if name not in listed]
    found += [f"invented: {name}" for name in listed if name not in wanted]
    if not found and list(wanted) != list(listed):
        found.append(ORDER)
    for name, (kind, said) in listed.items():
        if not kind or not said:
            found.append(f"without a type or a word: {name}")
        elif name in wanted and not name.startswith("*") and not _default_is_said(wanted[name], kind, home):
            found.append(f"default of {name}: {kind}")
    return found


def found(fault: Callable[[Documented], object], listed: list[Documented]) -> dict[str, object]:
    """What is wrong with each that something is wrong with, by name."""
    return {one.name: wrong for one in listed if (wrong := fault(one))}


def test_parameters_are_those_of_the_signature():
    wrong = found(
        lambda one: faults_of_parameters(one.thing, entries(one.sections.get("Parameters", ""))), CALLS
    )
    assert wrong == {}


def test_what_comes_back_is_said():
    def silent(one: Documented) -> bool:
        gives = inspect.signature(one.thing).return_annotation not in ("None", None)
        return gives != bool({"Returns", "Yields"} & one.sections.keys())

    assert found(silent, CALLS) == {}


def _raised(thing: Any) -> set[str]:
    """The errors that a function itself raises by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    names = [
        made.func.id for made in raised if isinstance(made, ast.Call) and isinstance(made.func, ast.Name)
    ]
    return {name for name in names if name.endswith("Error")}


def test_errors_are_said_and_exist():
    """Those that the function raises itself; what a function below it raises is for the writer to know."""

    def wrong(one: Documented) -> set[str]:
        said = set(entries(one.sections.get("Raises", "")))
        strange = {name for name in said if not any(hasattr(home, name) for home in HOMES_OF_ERRORS)}
        return _raised(one.thing) - said | strange

    assert found(wrong, CALLS + PROPERTIES) == {}


def test_a_class_says_what_it_is_made_of():
    """Its parameters, where users make it; its attributes, where it is a result. A field is said once."""
    assert found(_faults_of_class, CLASSES) == {}


def _faults_of_class(one: Documented) -> list[str]:
    parameters = entries(one.sections.get("Parameters", ""))
    attributes = entries(one.sections.get("Attributes", ""))
    wrong = [f"said twice: {name}" for name in parameters.keys() & attributes.keys()]
    if parameters:
        faults = faults_of_parameters(one.thing, parameters)
        wrong += [
            fault for fault in faults if fault != ORDER or not is_dataclass(one.thing)
        ]  # its fields are keywords
    own = (
        {field.name for field in fields(one.thing)} if is_dataclass(one.thing) else set(arguments(one.thing))
    )
    if not issubclass(one.thing, str):  # an enumeration is made of its words
        wrong += [
            f"missing: {name}" for name in own - parameters.keys() - attributes.keys() if name[0] != "_"
        ]
    known = own | {name for base in one.thing.__mro__ for name in vars(base).get("__annotations__", {})}
    known |= set(dir(one.thing))
    wrong += [f"invented: {name}" for name in attributes if name not in known]
    return wrong + [f"without a type or a word: {name}" for name, said in attributes.items() if not all(said)]


def test_a_property_says_what_it_is():
    """In a sentence without a colon and without sections: Sphinx takes what stands before a colon for the type."""

    def wrong(one: Documented) -> bool:
        return not one.text.strip() or ":" in one.text.partition("\n\n")[0] or len(one.sections) > 1

    assert found(wrong, PROPERTIES) == {}


def test_there_is_an_example():
    """Of its own, or where its class or another method is shown."""

    def unseen(one: Documented) -> bool:
        last, own = one.name.rpartition(".")[2], ">>> " in one.sections.get("Examples", "")
        if own or last in CALLED_BY_US:
            return False
        return one.owner is None or not re.search(rf"\.{last}\b", shown[one.owner])

    shown = {one.thing: one.sections.get("Examples", "") for one in CLASSES}
    for one in CALLS:
        if one.owner is not None:
            shown[one.owner] += one.sections.get("Examples", "")
    assert found(unseen, CALLS + PROPERTIES + CLASSES) == {}


def test_examples_stand_in_their_section():
    assert found(lambda one: ">>> " in one.text.partition("\nExamples\n----")[0], CALLS + CLASSES) == {}


def test_the_walk_meets_what_users_meet():
    """A walk that finds nothing would agree with everything."""
    met = {name.rpartition(".")[2] for name in PUBLIC}
    assert {"Fit", "RidgePath", "PCAFit", "Verdict", "Check", "Prospect", "Balance", "NamedMatrix"} <= met
    assert len(CALLS) > 100
    assert len(PROPERTIES) > 60


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ("a : int\n    One.\n", "missing: b"),
        ("a : int\n    One.\nb : int, default 2\n    Two.\nc : int\n    Three.\n", "invented: c"),
        ("b : int, default 2\n    Two.\na : int\n    One.\n", ORDER),
        ("a : int\n    One.\nb : int, default 3\n    Two.\n", "default of b: int, default 3"),
        ("a : int\nb : int, default 2\n    Two.\n", "without a type or a word: a"),
    ],
)
def test_a_docstring_that_disagrees_is_found(section, fault):
    def call(a: int, b: int = 2) -> int: ...

    assert faults_of_parameters(call, entries(section)) == [fault]
