"""The public names of privcov with their signatures, one a line: what a change must not alter by accident.

    python tools/public_api.py             # print them
    python tools/public_api.py --write     # write docs/reference/public-api.txt, which a test compares

Public is what ``import privcov`` hands out, and of a class its constructor, its public methods, properties, constants
and members. What a class takes over from another package is that package's. Modules are no part of it: a name may move
from one file to another. What it takes to change a line is said in CONTRIBUTING.md, "What stays as it is".
"""

from __future__ import annotations

import argparse
import enum
import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LISTED = ROOT / "docs/reference/public-api.txt"
HEADER = """\
# The public API: every name that `import privcov as pc` hands out, with its signature.
# Written by `python tools/public_api.py --write`, compared by tests/tools/test_public_api.py.
"""
REMEDY = """
The public API differs from docs/reference/public-api.txt:

{difference}

If you did not mean to change it, restore it: people's programs call it so. If you did, follow "What stays as it is" in
CONTRIBUTING.md (a name that goes away warns first), run `python tools/public_api.py --write`, and say in the changelog
what callers have to do.
"""


class _Plain(str):
    """An annotation that shows itself without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(thing: Any) -> inspect.Signature:
    """How something is called, with annotations as they are written."""
    found = inspect.signature(thing)
    return found.replace(
        parameters=[one.replace(annotation=_plain(one.annotation)) for one in found.parameters.values()],
        return_annotation=_plain(found.return_annotation),
    )


def _plain(annotation: Any) -> Any:
    return _Plain(annotation) if isinstance(annotation, str) else annotation


def lines() -> Iterator[str]:
    """Every public name in alphabetical order, the parts of a class below it."""
    import privcov

    for name in sorted(dir(privcov)):
        thing = getattr(privcov, name)
        if not isinstance(thing, type):
            yield f"{name}{signature(thing)}" if callable(thing) else f"{name}: {type(thing).__name__}"
        elif issubclass(thing, enum.Enum):
            yield f"{name}({', '.join(f'{member.name} = {member.value!r}' for member in thing)})"
            yield from _parts(name, thing)
        else:
            above = [base.__name__ for base in thing.__bases__ if issubclass(base, BaseException)]
            shown = "" if above else signature(thing).replace(return_annotation=inspect.Signature.empty)
            yield f"class {name}{shown or '[' + ', '.join(above) + ']'}"
            yield from _parts(name, thing)


def _parts(name: str, kind: type) -> Iterator[str]:
    """The public attributes of a class that privcov itself defines."""
    given = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    ours: dict[str, Any] = {}
    for above in reversed(kind.__mro__):
        if above.__module__.partition(".")[0] == "privcov":
            ours |= vars(above)
    for part, thing in sorted(ours.items()):
        if part.startswith("_") or part in given or isinstance(getattr(kind, part), kind):
            continue
        if type(thing).__module__.startswith("sklearn"):  # what scikit-learn puts into its heirs
            continue
        if isinstance(thing, (property, cached_property)):
            getter = thing.fget if isinstance(thing, property) else thing.func
            result = signature(getter).return_annotation if getter else "Any"
            yield f"    {name}.{part}: {result}"
        elif callable(getattr(kind, part)):
            yield f"    {name}.{part}{signature(getattr(kind, part))}"
        else:
            yield f"    {name}.{part}: {type(thing).__name__}"


def text() -> str:
    """The whole list, as it is written."""
    return HEADER + "".join(f"{line}\n" for line in lines())


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description="The public names of privcov with their signatures.")
    parser.add_argument("--write", action="store_true", help=f"write {LISTED.relative_to(ROOT)}")
    if parser.parse_args().write:
        LISTED.write_text(text())
    else:
        sys.stdout.write(text())


if __name__ == "__main__":
    main()
