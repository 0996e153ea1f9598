"""The parts of the reference that follow from the source: commands, error codes, names, mechanisms.

A page holds ``<!-- generated: commands -->`` on a line of its own, and the text made here stands in its place
when the site is built. So the reference cannot disagree with the program.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click

import privcov
from privcov import cli, errors
from privcov.mechanisms import MECHANISMS, WITHDRAWN

SOURCE = Path(privcov.__file__).parent
ESTIMATORS = ("PrivateCovariance", "PrivatePCA", "PrivateRidge", "PrivateLinearRegression")
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
    "privcov.unbounded": ["GaussianEstimate", "load", "expected_error", "estimate_mean", "estimate_scale"],
    "privcov.accounting": [
        "gaussian_delta",
        "gaussian_mu",
        "zcdp_to_approx",
        "approx_to_zcdp",
        "pure_to_zcdp",
    ],
    "privcov.noise.randomness": ["rehearsal"],
}


def commands() -> str:
    """Every command with its help, as ``--help`` prints it."""
    group = click.Context(cli.privcov, info_name="privcov")
    return "\n".join(_command(group, name) for name in cli.privcov.list_commands(group))


def _command(parent: click.Context, name: str) -> str:
    assert isinstance(parent.command, click.Group)
    command = parent.command.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent, max_content_width=96)
    context.terminal_width = 96
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
    for page in sorted((Path(__file__).parents[1] / "decisions").glob("[0-9]*.md")):
        title = page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"* [{page.stem[:4]}]({page.name}): {title.removeprefix(page.stem[:4]).strip(' ·.')}")
    return "\n".join(lines)


def reproduced() -> str:
    """The line of the first page that leads to the reproductions, once there are any."""
    there = (Path(__file__).parents[1] / "reproduced" / "README.md").exists()
    return "| compare with the papers | [reproduced](reproduced/README.md) |" if there else ""


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
    public = [name for name in privcov.__all__ if name != "__version__"]
    return "\n".join(_directive(f"privcov.{name}", name) for name in [*public, *ESTIMATORS])


def more_names() -> str:
    """What the guides use beside them, by module."""
    parts = []
    for module, listed in MORE.items():
        parts.append(f"## {module}\n")
        parts += [_directive(f"{module}.{name}") for name in listed]
    return "\n".join(parts)


def _directive(name: str, title: str | None = None) -> str:
    module, _, last = name.rpartition(".")
    kind, members = "function", ""
    if inspect.isclass(getattr(import_module(module), last)):
        kind, members = "class", "   :members:\n   :exclude-members: set_fit_request, set_score_request\n"
    heading = f"## {title}\n\n" if title else ""
    return f"{heading}```{{eval-rst}}\n.. auto{kind}:: {name}\n{members}```\n"


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "decisions": decisions,
    "error-codes": error_codes,
    "mechanisms": mechanisms,
    "more-names": more_names,
    "names": names,
    "reproduced": reproduced,
}
