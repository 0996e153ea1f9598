"""The parts of the manual that follow from the source: commands, error codes, names, mechanisms, decisions.

    .venv/bin/python docs/site/generated.py             write them anew
    .venv/bin/python docs/site/generated.py --check     say which pages are stale; exit code 1 if any is

Such a part stands in its page between two comments. It is committed, so that it can be read without building
anything, and a test and the site's build compare it with the source, so that it cannot disagree with the program.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

import described

import privcov
from privcov import cli, errors
from privcov.mechanisms import MECHANISMS, WITHDRAWN

DOCS = Path(__file__).parents[1]
SOURCE = Path(privcov.__file__).parent


def commands() -> str:
    """Every command with its help, as ``--help`` prints it."""
    words = cli.privcov.context_settings["help_option_names"]
    group = click.Context(cli.privcov, info_name="privcov", help_option_names=words)
    return "\n".join(_command(group, name) for name in cli.privcov.list_commands(group))


def _command(parent: click.Context, name: str) -> str:
    assert isinstance(parent.command, click.Group)
    command = parent.command.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent, max_content_width=96)
    context.terminal_width = 96
    command._help_option = None  # kept from whoever asked first, perhaps with other words for it
    title = context.command_path
    text = (
        f"{'##' if parent.parent is None else '###'} {title}\n\n```text\n{command.get_help(context)}\n```\n"
    )
    if isinstance(command, click.Group):
        text += "\n" + "\n".join(_command(context, each) for each in command.list_commands(context))
    return text


def error_codes() -> str:
    """Every code in the source, with the first sentence said under it; braces stand for a public value."""
    said: dict[str, tuple[str, str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for kind, code, sentence in _raised(ast.parse(path.read_text(encoding="utf-8"))):
            if said.get(code, ("", "…"))[1] in ("", "…"):
                said[code] = kind, sentence
    said["E208"] = "ParameterError", next(iter(WITHDRAWN.values()))
    said.setdefault("E200", ("UsageError", "a command, an option or an argument is not as its --help says."))
    said.setdefault("E900", ("InternalError", str(errors.InternalError()).removeprefix("E900 ")))
    lines = ["| code | error | exit | says, for example |", "|---|---|---|---|"]
    for code, (kind, sentence) in sorted(said.items()):
        exit_code = getattr(getattr(errors, kind, None), "exit_code", 2)
        lines.append(f"| {code} | {kind} | {exit_code} | {_escaped(sentence)} |")
    return "\n".join(lines)


def _raised(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """(class, code, sentence) of every call ``SomethingError("E123", sentence, …)``."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=kind), args=[ast.Constant(value=str(code)), *rest]) if (
                kind.endswith("Error") and len(code) == 4 and code[0] == "E" and code[1:].isdigit()
            ):
                yield kind, code, _sentence(rest[0]) if rest else ""


def _sentence(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_sentence(value) for value in values)
        case ast.FormattedValue(value=value):
            name = re.split(r"[([{]", ast.unparse(value))[0].split(".")[-1]
            return f"‹{name.strip('_').replace('_', ' ') or '…'}›"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sentence(left) + _sentence(right)
    return "…"


def _escaped(text: str) -> str:
    for mark in "\\`*_[]<>|$":
        text = text.replace(mark, "\\" + mark)
    return text


def decisions() -> str:
    """Every page of docs/decisions, in order, with its title."""
    lines = []
    for page in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        title = page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"* [{page.stem[:4]}]({page.name}): {title.removeprefix(page.stem[:4]).strip(' ·.')}")
    return "\n".join(lines)


def mechanisms() -> str:
    """Every mechanism of the registry: what it promises, what it is best at, its proof."""
    lines = ["| mechanism | guarantee | what it does | best at |", "|---|---|---|---|"]
    for name, made in MECHANISMS.items():
        proof = Path(made.proof).stem
        promise = ", ".join(str(kind) for kind in made.kinds)
        lines.append(
            f"| [{name}](../proofs/{proof}.md) | {promise} | {_escaped(made.summary)} | {_escaped(made.best_at)} |"
        )
    return "\n".join(lines)


def names() -> str:
    """The public names of the package, one by one, from their docstrings."""
    return "\n".join(
        f"## {name}\n\n{described.described(thing, f'privcov.{name}')}"
        for name, thing in described.public().items()
    )


def more_names() -> str:
    """What stands beside them, by module."""
    parts = []
    for module, listed in described.more().items():
        parts.append(f"## {module}\n")
        for name in listed:
            parts.append(described.described(getattr(import_module(module), name), f"{module}.{name}"))
    return "\n".join(parts)


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "decisions": decisions,
    "error-codes": error_codes,
    "mechanisms": mechanisms,
    "more-names": more_names,
    "names": names,
}
_PART = re.compile(
    r"(?<=<!-- generated: )([\w-]+) -->\n.*?(?=<!-- end of generated -->$)", re.MULTILINE | re.DOTALL
)


def refreshed(text: str) -> str:
    """The text of a page, with its generated parts as the source has them now."""
    return _PART.sub(lambda found: f"{found[1]} -->\n\n{PARTS[found[1]]().strip()}\n\n", text)


def stale(text: str) -> bool:
    """Whether a page says other words than the source; how lines are broken is left to the library that breaks them."""
    return refreshed(text).split() != text.split()


def pages() -> list[Path]:
    """Those with generated parts."""
    found = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]
    return [page for page in found if _PART.search(page.read_text(encoding="utf-8"))]


def main() -> int:
    """Write or check every page with generated parts."""
    old = [page for page in pages() if stale(page.read_text(encoding="utf-8"))]
    for page in old:
        print(f"{'stale: ' if '--check' in sys.argv else 'wrote '}{page.relative_to(DOCS.parent)}")
        if "--check" not in sys.argv:
            page.write_text(refreshed(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if old and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
