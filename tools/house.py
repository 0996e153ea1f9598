"""Counts the house: how many modules, how they hang together, how much of them is explained.

    python tools/house.py                             # the tree beside this script
    python tools/house.py --source DIR                # the package in DIR, such as an older checkout's src/privcov
    python tools/house.py --svg FILE                  # and the imports between its rooms, as a figure
    python tools/house.py --edges --json

Nothing is imported and nothing is run: every figure is read off the syntax, so that two trees can be compared.

What is counted
---------------
module
    A ``.py`` file below the source, ``__init__`` files included.
room
    What stands directly below the source: a folder, or a module that is in none.
importer of a module
    Another module that names it in an import statement, at any depth, or in a text that is its whole dotted name (the
    tables of commands and of public names, whose modules are imported on first use).
import inside a function
    An import statement within a function that names a module of the package. Those of ``cli``, which keep ``--help``
    quick, are counted apart, and so are those of other packages (extras, which may be missing).
cycle
    Modules that need each other while they are being imported, or rooms that import each other.
room in no layer
    One that no ``layers`` contract of ``.importlinter`` names, neither itself nor a module in it.
public names
    What ``__init__`` hands out; of a class, its public methods too. A name with parameters is explained when its
    docstring has a NumPy section ``Parameters`` that names them all (a class: in its own or in that of ``__init__``; or
    ``Attributes``, where other calls make it).
comment lines
    Lines with a comment, per 100 lines of code; lines of docstrings and empty lines are neither.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import io
import json
import re
import signal
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SMALL = 60
"""A module of fewer lines is small."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Graph = dict[str, set[str]]


@dataclass(frozen=True)
class Module:
    """One file of the package, by its dotted name."""

    name: str
    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def room(self) -> str:
        """The part of the name below the package; empty for the package itself."""
        return ".".join(self.name.split(".")[1:2])


@dataclass(frozen=True)
class Import:
    """One module named by another. ``when`` is: loading, function, typing or text."""

    source: str
    target: str
    when: str


class House:
    """A package, read from its folder."""

    def __init__(self, source: Path, contract: Path) -> None:
        if not (source / "__init__.py").is_file():
            raise SystemExit(f"house: {source} is no package: give the folder that has its __init__.py.")
        self.package = source.resolve().name
        self.source, self.contract = source, contract
        self.modules = {module.name: module for module in self._read()}

    def _read(self) -> Iterator[Module]:
        for path in sorted(self.source.rglob("*.py")):
            parts = (self.package, *path.relative_to(self.source).with_suffix("").parts)
            is_package = parts[-1] == "__init__"
            yield Module(".".join(parts[:-1] if is_package else parts), path.read_text(), is_package)

    # -- imports -------------------------------------------------------------------------------------------------

    @cached_property
    def imports(self) -> list[Import]:
        """Every import of one module of the package by another."""
        found = (one for module in self.modules.values() for one in self._imports(module))
        return [one for one in found if one.source != one.target]

    @cached_property
    def foreign_in_functions(self) -> int:
        """Import statements within functions that name other packages."""
        return sum(
            when == "function" and not self._targets(node)
            for module in self.modules.values()
            for node, when in _statements(module.tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        )

    def _imports(self, module: Module) -> Iterator[Import]:
        for node, when in _statements(module.tree):
            if isinstance(node, ast.Constant):
                if node.value in self.modules and node.value != self.package:
                    yield Import(module.name, node.value, "text")
            else:
                for target in self._targets(node):
                    yield Import(module.name, target, when)

    def _targets(self, node: ast.AST) -> set[str]:
        """The modules that a statement names: ``from a import b`` is ``a.b`` where that is a module."""
        if isinstance(node, ast.Import):
            return {alias.name for alias in node.names} & {*self.modules}
        assert isinstance(node, ast.ImportFrom)
        home = node.module or ""
        wanted = {f"{home}.{alias.name}" for alias in node.names}
        inner = wanted & {*self.modules}
        return inner | ({home} & {*self.modules} if inner != wanted else set())

    def importers(self) -> Graph:
        """Who imports a module, at any time and in any way."""
        return _graph(self.modules, {(one.target, one.source) for one in self.imports})

    def rooms(self) -> dict[str, int]:
        """Every room, with its lines."""
        found: Counter[str] = Counter()
        for module in self.modules.values():
            if module.room:
                found[module.room] += module.lines
        return dict(found)

    def edges(self) -> Counter[tuple[str, str]]:
        """How many imports go from one room to another; what is for types alone and names in tables are left out."""
        found: Counter[tuple[str, str]] = Counter()
        for one in self.imports:
            pair = self.modules[one.source].room, self.modules[one.target].room
            if one.when in ("loading", "function") and all(pair) and pair[0] != pair[1]:
                found[pair] += 1
        return found

    def between(self) -> Graph:
        """Which rooms a room imports."""
        return _graph(self.rooms(), self.edges())

    def outside_layers(self) -> list[str]:
        """The rooms that no contract of layers names."""
        parser = configparser.ConfigParser()
        parser.read(self.contract)
        named = set()
        for section in parser.sections():
            if parser.get(section, "type", fallback="") != "layers":
                continue
            containers = parser.get(section, "containers", fallback="").split() or [""]
            for word in re.split(r"[\s|:]+", re.sub(r"#.*", "", parser.get(section, "layers"))):
                for container in containers:
                    named.add(f"{container}.{word.strip('()')}".strip("."))
        # A room is named by itself or by a module in it; a layer that is the whole package names nothing.
        spoken_for = {name.split(".")[1] for name in named if name.startswith(f"{self.package}.")}
        return sorted({*self.rooms()} - spoken_for)

    # -- words ---------------------------------------------------------------------------------------------------

    def public(self) -> dict[str, ast.ClassDef | Function]:
        """What the package hands out, and the public methods of its classes, by name."""
        found: dict[str, ast.ClassDef | Function] = {}
        for name, home in self._handed_out().items():
            node = self._definition(home, name)
            if node is None:
                continue
            found[name] = node
            if isinstance(node, ast.ClassDef):
                found |= {
                    f"{name}.{part.name}": part
                    for part in node.body
                    if isinstance(part, Function) and not part.name.startswith("_") and not _is_property(part)
                }
        return found

    def _handed_out(self) -> dict[str, str]:
        return {
            alias.asname or alias.name: node.module
            for node, _ in _statements(self.modules[self.package].tree)
            if isinstance(node, ast.ImportFrom) and node.module in self.modules
            for alias in node.names
            if not alias.name.startswith("_")
        }

    def _definition(self, home: str, name: str) -> ast.ClassDef | Function | None:
        """Where a name is defined, followed through the modules that pass it on."""
        for node in self.modules[home].tree.body:
            if (
                isinstance(node, (ast.ClassDef, ast.FunctionDef))
                and node.name == name
                and not _is_overload(node)
            ):
                return node
            if isinstance(node, ast.ImportFrom) and node.module in self.modules:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._definition(node.module, alias.name)
        return None

    def asking(self) -> dict[str, ast.ClassDef | Function]:
        """The public names that have parameters."""
        return {name: node for name, node in self.public().items() if _parameters(node)}

    def unexplained(self) -> list[str]:
        """Those of them whose docstring leaves a parameter out."""
        return [name for name, node in self.asking().items() if not _is_explained(node)]

    def counts(self) -> dict[str, Any]:
        """Every figure, by its name."""
        modules, importers = list(self.modules.values()), self.importers()
        single = [m for m in modules if not m.is_package and len(importers[m.name]) == 1]
        inside = {(one.source, one.target) for one in self.imports if one.when == "function"}
        of_cli = {pair for pair in inside if pair[0].startswith(f"{self.package}.cli")}
        loading = _graph(
            self.modules, {(one.source, one.target) for one in self.imports if one.when == "loading"}
        )
        docstrings = [text for module in modules for text in _docstrings(module.tree)]
        kinds = sum((_lines_by_kind(module.text) for module in modules), Counter[str]())
        rooms = self.rooms()
        return {
            "modules": len(modules),
            "lines": sum(module.lines for module in modules),
            "rooms": len(rooms),
            "files at the root": sum(
                module.name.count(".") == 1 and not module.is_package for module in modules
            )
            + 1,
            f"modules under {SMALL} lines": sum(m.lines < SMALL for m in modules if not m.is_package),
            f"__init__ files under {SMALL} lines": sum(m.lines < SMALL for m in modules if m.is_package),
            "modules with one importer": len(single),
            "of these under 60 lines": sum(module.lines < SMALL for module in single),
            "imports inside functions": len(inside - of_cli),
            "imports inside functions, cli": len(of_cli),
            "imports inside functions, other packages": self.foreign_in_functions,
            "cycles of modules": len(cycles(loading)),
            "cycles of rooms": len(cycles(self.between())),
            "imports between rooms": sum(self.edges().values()),
            "pairs of rooms that import": len(self.edges()),
            "rooms in no layer": len(self.outside_layers()) if self.contract.exists() else None,
            "public names with parameters": len(self.asking()),
            "of these explained": len(self.asking()) - len(self.unexplained()),
            "docstrings": len(docstrings),
            "of these one line": sum("\n" not in text.strip() for text in docstrings),
            "comment lines per 100": round(100 * kinds["comment"] / max(1, kinds["code"]), 1),
        }

    def details(self) -> dict[str, list[str]]:
        """The names behind the figures that a maintainer would ask for."""
        largest = sorted(self.modules.values(), key=lambda module: -module.lines)[:8]
        return {
            "largest modules": [f"{module.name} {module.lines}" for module in largest],
            "imports inside functions": sorted(
                f"{one.source} → {one.target}"
                for one in {*self.imports}
                if one.when == "function" and not one.source.startswith(f"{self.package}.cli")
            ),
            "rooms in no layer": self.outside_layers() if self.contract.exists() else [],
            "rooms that import each other": [" ".join(sorted(group)) for group in cycles(self.between())],
        }

    # -- the figure ----------------------------------------------------------------------------------------------

    def levels(self) -> list[list[str]]:
        """Rooms by height: each stands above all that it imports, those of a cycle side by side."""
        graph = self.between()
        group = {room: frozenset({room}) for room in graph}
        for found in cycles(graph):
            group |= dict.fromkeys(found, frozenset(found))
        height: dict[frozenset[str], int] = {}

        def measure(of: frozenset[str]) -> int:
            if of not in height:
                below = {group[target] for room in of for target in graph[room]} - {of}
                height[of] = 1 + max(map(measure, below), default=-1)
            return height[of]

        levels = defaultdict(list)
        for room in graph:
            levels[measure(group[room])].append(room)
        return [_by_neighbours(levels[level], graph) for level in sorted(levels, reverse=True)]

    def svg(self) -> str:
        """The rooms from top to bottom: a line goes down to what is imported, and is red where it goes up or aside."""
        levels, edges, sizes = self.levels(), self.edges(), self.rooms()
        width, step, top = 1200, 64, 40
        place = {
            room: (width * (2 * at + 1) / (2 * len(level)), top + 24 + step * number)
            for number, level in enumerate(levels)
            for at, room in enumerate(level)
        }
        height = top + step * len(levels)
        counts = self.counts()
        title = (
            f"{self.package}: {counts['modules']} modules in {counts['rooms']} rooms, "
            f"{counts['imports between rooms']} imports between {counts['pairs of rooms that import']} pairs of rooms"
        )
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            "<style>text{font:11px sans-serif;fill:#1a1a1a;text-anchor:middle}.title{font-size:15px}"
            "rect{fill:#eef3f8;stroke:#5b7fa5}.file{fill:#fff6e5;stroke:#b98a2d}"
            "path{fill:none;stroke:#5b7fa5;stroke-opacity:.3}.up{stroke:#c0392b;stroke-opacity:.9}"
            "@media(prefers-color-scheme:dark){text{fill:#e8e8e8}rect{fill:#223040}.file{fill:#3a2f17}}</style>",
            f'<text class="title" x="{width / 2}" y="22">{escape(title)}</text>',
        ]
        for (source, target), count in sorted(edges.items()):
            (x, y), (u, v) = place[source], place[target]
            up = ' class="up"' if v <= y else ""
            bend = (v - y) / 2 if v != y else -34
            thick = f"{min(6.0, 0.6 + count / 6):.1f}"
            parts.append(
                f'<path{up} stroke-width="{thick}" d="M{x:.0f} {y:.0f}C{x:.0f} {y + bend:.0f} {u:.0f} {v - bend:.0f}'
                f' {u:.0f} {v:.0f}"><title>{source} → {target}: {count}</title></path>'
            )
        for room, (x, y) in place.items():
            wide = 12 + 6.4 * len(room)
            kind = "folder" if self.modules[f"{self.package}.{room}"].is_package else "file"
            parts.append(
                f'<rect class="{kind}" x="{x - wide / 2:.1f}" y="{y - 11:.0f}" width="{wide:.1f}" height="22" rx="4">'
                f"<title>{room}: {sizes[room]} lines</title></rect>"
                f'<text x="{x:.0f}" y="{y + 4:.0f}">{room}</text>'
            )
        return "\n".join([*parts, "</svg>", ""])


def _graph(nodes: Iterable[str], pairs: Iterable[tuple[str, str]]) -> Graph:
    made: Graph = {node: set() for node in nodes}
    for source, target in pairs:
        made[source].add(target)
    return made


def cycles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The groups of nodes that reach each other (Tarjan's strongly connected components of more than one node).

    >>> cycles({"a": ["b"], "b": ["a", "c"], "c": []}) == [{"a", "b"}]
    True
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append({*stack[at:]})
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def _by_neighbours(level: list[str], graph: Graph) -> list[str]:
    """Rooms that are imported by many in the middle of their row, so that lines stay short."""
    asked = Counter(target for targets in graph.values() for target in targets)
    ordered = sorted(level, key=lambda room: (-asked[room], room))
    return ordered[1::2][::-1] + ordered[::2]


def _statements(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Import statements and texts, with when they count: loading, function or typing."""
    todo: list[tuple[ast.AST, str]] = [(tree, "loading")]
    while todo:
        node, when = todo.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
            yield node, when
        elif isinstance(node, Function):
            when = "function"
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            todo += [(inner, when) for inner in node.orelse]
            todo += [(inner, "typing") for inner in node.body]
            continue
        todo += [(inner, when) for inner in ast.iter_child_nodes(node)]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_overload(node: ast.ClassDef | Function) -> bool:
    """Whether it tells the types of a call, and another of the same name answers it."""
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def _is_property(node: Function) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list)


def _parameters(node: ast.ClassDef | Function) -> list[str]:
    """The names a caller may give: of a class, those of ``__init__``, or the fields of a dataclass."""
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, Function) and part.name == "__init__":
                return _parameters(part)
        if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
            return []
        return [
            part.target.id
            for part in node.body
            if isinstance(part, ast.AnnAssign)
            and isinstance(part.target, ast.Name)
            and not part.target.id.startswith("_")
            and "ClassVar" not in ast.unparse(part.annotation)
        ]
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def _is_explained(node: ast.ClassDef | Function) -> bool:
    """Whether a section ``Parameters`` of the docstring names every parameter; of a class, ``Attributes`` will do."""
    sections = "Parameters|Attributes" if isinstance(node, ast.ClassDef) else "Parameters"
    texts = [ast.get_docstring(node) or ""]
    if isinstance(node, ast.ClassDef):
        texts += [ast.get_docstring(part) or "" for part in node.body if isinstance(part, Function)]
    for text in texts:
        found = re.findall(rf"^(?:{sections})\n-{{3,}}\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", text, re.M | re.S)
        if found:
            heads = " ".join(head for section in found for head in re.findall(r"^\S.*$", section, re.M))
            return all(re.search(rf"\b{name}\b", heads) for name in _parameters(node))
    return False


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Those of functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield text


def _lines_by_kind(text: str) -> Counter[str]:
    """How many lines have code and how many a comment; a line may have both, one of a lone text has neither."""
    code: set[int] = set()
    comments: set[int] = set()
    fresh = True  # at the start of a statement, where a text is a docstring
    silent = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type == tokenize.NEWLINE:
            fresh = True
        elif token.type not in silent and not (fresh and token.type == tokenize.STRING):
            code.update(range(token.start[0], token.end[0] + 1))
            fresh = False
    return Counter(code=len(code), comment=len(comments))


def main() -> None:
    """Read, count, print."""
    parser = argparse.ArgumentParser(description="Counts the house: modules, imports, words.")
    parser.add_argument(
        "--source", type=Path, default=ROOT / "src/privcov", help="the folder of the package to count"
    )
    parser.add_argument(
        "--contract", type=Path, help="the file of layers; by default .importlinter beside the package's src"
    )
    parser.add_argument(
        "--svg", type=Path, metavar="FILE", help="write the imports between rooms as a figure"
    )
    parser.add_argument("--edges", action="store_true", help="print how many imports go from room to room")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    contract = given.contract or given.source.resolve().parents[1] / ".importlinter"
    house = House(given.source, contract)
    if given.svg is not None:
        given.svg.write_text(house.svg())
    if given.json:
        told = {"counts": house.counts(), "names": house.details()}
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        for name, value in house.counts().items():
            print(f"{name:<42}{'not known' if value is None else format(value, ',')}")
        for name, lines in house.details().items():
            print(f"\n{name}:" + "".join(f"\n  {line}" for line in lines or ["none"]))
    if given.edges:
        print("\nimports from room to room:")
        for (source, target), count in sorted(house.edges().items()):
            print(f"  {source} → {target}: {count}")


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # a reader of the first lines alone, as head: end without a traceback
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
