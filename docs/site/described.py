"""Python names as Markdown: their signatures and docstrings, and which names the reference describes.

Nothing here names a module: results are found through what public functions say they return, the rest through what
the guides import or mention. So a module that moves takes its description along.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum, EnumType
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any

import privcov
from privcov import estimators

DOCS = Path(__file__).parents[1]
GUIDES = ("learn", "do", "explain")
WIDTH = 96


def public() -> dict[str, Any]:
    """The names of the package itself, estimators included."""
    names = [*privcov.__all__, *estimators.__all__]
    return {name: getattr(privcov, name) for name in dict.fromkeys(names) if name != "__version__"}


def more() -> dict[str, list[str]]:
    """By module, what stands beside them: what they return or hold, and what the guides name."""
    taken = list(public().values())
    found: dict[str, list[str]] = {}
    for thing in taken:
        for result in _results(thing):
            if result not in taken:
                _add(found, _home(result), result.__name__)
    for module, name in _in_guides():
        thing = getattr(import_module(module), name)
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing not in taken:
            _add(found, _home(thing), name)
    return dict(sorted(found.items()))


def _add(found: dict[str, list[str]], module: str, name: str) -> None:
    if name not in found.setdefault(module, []):
        found[module].append(name)


def _home(thing: Any) -> str:
    """The shortest module path that gives it."""
    parts = thing.__module__.split(".")
    paths = [".".join(parts[:length]) for length in range(2, len(parts) + 1)]
    return next(path for path in paths if getattr(import_module(path), thing.__name__, None) is thing)


def _results(thing: Any) -> Iterator[type]:
    """The classes of ours that a function returns, or that a class has as fields or its methods return."""
    if inspect.isfunction(thing):
        yield from _classes(thing.__module__, thing.__annotations__.get("return", ""))
        return
    for kind in inspect.getmro(thing):
        if kind.__module__.partition(".")[0] == "privcov":
            for name, annotation in inspect.get_annotations(kind).items():
                if not name.startswith("_"):
                    yield from _classes(kind.__module__, annotation)
            for _, method in _methods(kind):
                yield from _classes(method.__module__, method.__annotations__.get("return", ""))


def _classes(module: str, annotation: object) -> Iterator[type]:
    known = vars(sys.modules[module])
    for word in re.findall(r"[A-Za-z_]\w*", str(annotation)):
        thing = known.get(word)
        if inspect.isclass(thing) and thing.__module__.partition(".")[0] == "privcov":
            yield thing


def _in_guides() -> Iterator[tuple[str, str]]:
    """(module, name) of what the guides import, or mention as ``privcov.module`` or ``privcov.module.name``."""
    for page in sorted(page for section in GUIDES for page in (DOCS / section).glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for module, names in re.findall(r"^from (privcov[\w.]*) import (.+)$", text, re.MULTILINE):
            for name in names.split("#")[0].split(","):
                yield from _named(f"{module}.{name.strip()}", page)
        for dotted in re.findall(r"`(privcov(?:\.\w+)+)\b", text):
            yield from _named(dotted, page)


def _named(dotted: str, page: Path) -> Iterator[tuple[str, str]]:
    """A module stands for its public names, and so does a name that a module lists with others."""
    try:
        module = import_module(dotted)
    except ImportError:
        above, _, name = dotted.rpartition(".")
        try:
            listed = getattr(import_module(above), "__all__", [])
            getattr(import_module(above), name)
        except (ImportError, AttributeError):
            raise LookupError(f"{page.relative_to(DOCS)} names {dotted}, which does not exist") from None
        yield from ((above, each) for each in (listed if name in listed and above != "privcov" else [name]))
        return
    own = [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == dotted
    ]
    yield from ((dotted, name) for name in getattr(module, "__all__", own))


def described(thing: Any, address: str) -> str:
    """Signature, docstring and members of a class or a function."""
    parts = [f"```text\n{signature(thing, address)}\n```", markdown(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        parts += [f"* `{each.name}` = `{each.value!r}`" for each in thing] if issubclass(thing, Enum) else []
        for name, text in _fields(thing).items():
            parts.append(f"* `{name}`\n\n{_indented(markdown(text))}")
        for name, method in _methods(thing):
            head = signature(method, name, method=True, wrap=False)
            if not isinstance(
                inspect.getattr_static(thing, name), FunctionType | classmethod | staticmethod
            ):  # read, not called
                head = f"{name}: {_type(method.__annotations__.get('return', ''))}"
            parts.append(f"* `{head}`\n\n{_indented(markdown(inspect.getdoc(method) or ''))}")
    return "\n\n".join(part.rstrip() for part in parts if part.strip()) + "\n"


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """(name, function) of every public method and property that the class has from us.

    Those of a base stand with the class, unless the base is described by itself.
    """
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "privcov"]
    alone = set(map(id, public().values())) - {id(kind)}
    seen = set()
    for base in bases:
        for name, thing in vars(base).items() if id(base) not in alone else ():
            thing = getattr(thing, "__func__", thing)  # a class method, a static method
            thing = getattr(thing, "fget", None) or getattr(thing, "func", thing)  # a property, a cached one
            ours = getattr(thing, "__module__", "").partition(".")[0] == "privcov"
            if not name.startswith("_") and name not in seen and inspect.isfunction(thing) and ours:
                seen.add(name)
                yield name, thing


def _fields(kind: type) -> dict[str, str]:
    """The fields of a class that have a text below them."""
    tree = ast.parse(dedent(inspect.getsource(kind)))
    assert isinstance(tree.body[0], ast.ClassDef)
    found = {}
    for field, below in zip(tree.body[0].body, tree.body[0].body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found


def signature(thing: Any, address: str, *, method: bool = False, wrap: bool = True) -> str:
    """``address(first, *, second: int = 1) -> Result``, on several lines where it is long."""
    if isinstance(thing, EnumType):
        return address
    try:
        given = inspect.signature(thing)
    except ValueError:  # a class that takes what its base takes
        return address
    written, star = [], False
    for name, parameter in given.parameters.items():
        if method and name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            written.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + name
        if parameter.annotation is not parameter.empty:
            text += f": {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += " = " if parameter.annotation is not parameter.empty else "="
            default = repr(parameter.default)
            text += "…" if default.startswith("<") or len(default) > 40 else default
        written.append(text)
    back = "" if given.return_annotation in (given.empty, None) else f" -> {_type(given.return_annotation)}"
    line = f"{address}({', '.join(written)}){back}"
    if not wrap or len(line) <= WIDTH:
        return line
    return "\n".join([f"{address}(", *(f"    {each}," for each in written), f"){back}"])


def _type(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def markdown(docstring: str) -> str:
    """A docstring, indentation taken off, as Markdown: examples and drawings in fences, NumPy's sections as lists.

    >>> markdown("Half of ``x``.\\n\\nParameters\\n----------\\nx : float\\n    A number.\\n")
    'Half of `x`.\\n\\n**Parameters**\\n\\n* `x` : float. A number.'
    """
    parts: list[str] = []
    section = ""
    for block in re.split(r"\n\s*?\n", docstring.strip()):
        head = re.match(r"(\w[\w ]*)\n-{3,}(?:\n|$)", block)
        if head:
            section, block = head[1], block[head.end() :]
            parts.append(f"**{section}**")
        if not block.strip():
            continue
        if block.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{dedent(block)}\n```")
        elif block.startswith("    "):
            parts.append(f"```text\n{dedent(block)}\n```")
        elif section in ("Parameters", "Returns", "Raises", "Yields", "Attributes", "Other Parameters"):
            parts.append("\n".join(_item(each) for each in re.split(r"\n(?=\S)", block)))
        else:
            parts.append(prose(block))
    return "\n\n".join(parts)


def _item(text: str) -> str:
    """``name : type`` and what is below it, as one line of a list."""
    first, _, below = text.partition("\n")
    name, colon, kind = first.partition(" : ")
    about = " ".join(below.split())
    said = f"`{name}`{f' : {prose(kind)}' if colon else ''}"
    return f"* {said}{f'. {prose(about)}' if about else ''}"


def prose(text: str) -> str:
    """Running text of a docstring: code in single backticks, pages as links, nothing that Markdown takes amiss."""
    pieces = re.split(r"(``.+?``|`[^`\n]+`)", text, flags=re.DOTALL)
    for i, piece in enumerate(pieces):
        if i % 2:
            code = " ".join(piece.strip("`").split())
            pieces[i] = _linked(code) if re.fullmatch(r"docs/[\w/#.-]+\.md[\w#-]*", code) else f"`{code}`"
        else:
            pieces[i] = _linked(re.sub(r"([*<$\\])|\](?=\()", r"\\\g<0>", piece))
    return "".join(pieces)


def _linked(text: str) -> str:
    return re.sub(r"\bdocs/(([\w-]+/)+([\w-]+)\.md(#[\w-]+)?)", r"[\3](../\1)", text)


def _indented(text: str) -> str:
    return re.sub(r"^(?=.)", "  ", text, flags=re.MULTILINE)
