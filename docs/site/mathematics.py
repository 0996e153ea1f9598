"""Formulas become MathML when the site is built: nothing is left for a browser's script to do.

Authors write formulas as they read in a terminal, with letters and signs of their own (ε, ‖, ≤, ², √). Three places
are set: a fence ``math``, code between two ``$``, and in running text whatever carries a ``_`` or a ``^``.
``latex`` puts LaTeX commands for the signs; the library ``latex2mathml`` makes MathML of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from privcov.text.aligning import together

RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀ", [*"0123456789-+", r"\mathrm{T}"], strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₋₊ᵢⱼₖₙ", "0123456789-+ijkn", strict=True))
SIGNS = {
    "−": "-",
    "·": r"\cdot ",
    "×": r"\times ",
    "±": r"\pm ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "≈": r"\approx ",
    "∝": r"\propto ",
    "∼": r"\sim ",
    "∈": r"\in ",
    "∞": r"\infty ",
    "‖": r"\Vert ",
    "→": r"\to ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "∫": r"\int ",
    "…": r"\ldots ",
    "′": "'",
    "½": "1/2",
    "⅓": "1/3",
}

_LOW = "".join(LOWERED) + "′"
_SMALL = "".join(RAISED) + _LOW
_ROUND = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_BRACES = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_RUN = (
    rf"(?:{_BRACES}|{_ROUND}|\|[^|\s]+\||[½⅓∞*·]"
    rf"|\d+(?:\.\d+)?(?:[a-zα-ω][{_LOW}]*)?(?!_)|[a-z]+\d*(?!_)|[a-zA-ZΑ-Ωα-ω][{_LOW}]*)"
)
_BASE = rf"(?:\d+(?:\.\d+)?|[^\W\d_{_SMALL}][̀-ͯ]*|[)\]‖|∫])[{_SMALL}]*"
_ATOM = re.compile(rf"(?P<base>{_BASE})(?P<scripts>(?:[_^][−+-]?{_RUN}[{_SMALL}]*)+)")
_SCRIPT = re.compile(rf"(?P<kind>[_^])(?P<what>[−+-]?{_RUN})")


def formulas(text: str) -> Iterator[tuple[str, bool]]:
    """Running text in pieces, each with whether it is a formula: what carries a ``_`` or a ``^``.

    A name of a program is none: there whole words stand on both sides of the ``_``.

    >>> list(formulas("σ_i² is not noise_std"))
    [('σ_i²', True), (' is not noise_std', False)]
    """
    done = 0
    for found in _ATOM.finditer(text):
        before, base, scripts = (
            text[max(0, found.start() - 1) : found.start()],
            found["base"][0],
            found["scripts"],
        )
        a_word = before.isalpha() and before not in _SMALL and base.isalpha()
        if scripts[0] == "_" and (base.isdigit() or (a_word and re.match("_[a-z]{2}", scripts))):
            continue
        if text[done : found.start()]:
            yield text[done : found.start()], False
        yield found[0], True
        done = found.end()
    if text[done:]:
        yield text[done:], False


def braced(text: str) -> str:
    """A formula of running text with braces about its scripts, as LaTeX wants them.

    >>> braced("e^(−x_ij/2)")
    'e^{−x_{ij}/2}'
    """

    def script(found: re.Match[str]) -> str:
        sign, what = re.fullmatch(r"([−+-]?)(.*)", found["what"], re.DOTALL).groups()  # type: ignore[union-attr]
        if what[0] == "{" or (what[0] == "(" and not sign):
            what = what[1:-1]
        what = re.sub(r"\b(tr|ln|sin|cos|max|min)(²?) ", r"\\mathrm{\1}\2\\,", what)
        return f"{found['kind']}{{{sign}{braced(what)}}}"

    return _SCRIPT.sub(script, text)


def latex(formula: str) -> str:
    """LaTeX for a formula that is written with signs of its own.

    >>> latex("‖D‖_F² ≤ √(2R)")
    '\\\\Vert D\\\\Vert _F^{2} \\\\le  \\\\sqrt{2R}'
    """
    formula = re.sub(
        rf"√(?:({_ROUND})|(\d+|\w))", lambda f: rf"\sqrt{{{(f[1] or '')[1:-1] or f[2]}}}", formula
    )
    for mark, small in (("^", RAISED), ("_", LOWERED)):
        runs = re.split(f"([{''.join(small)}]+)", formula)  # every second one is small
        runs[1::2] = [f"{mark}{{{''.join(small[sign] for sign in run)}}}" for run in runs[1::2]]
        formula = "".join(runs)
    return "".join(SIGNS.get(sign, sign) for sign in formula)


def mathml(formula: str, *, display: bool = False) -> str:
    """MathML of a formula; ``display``: on a line of its own.

    >>> mathml("ε²")
    '<math display="inline"><mrow><msup><mi>ε</mi><mrow><mn>2</mn></mrow></msup></mrow></math>'
    """
    depth = 0
    for mark in re.sub(r"\\[{}]", "", formula):
        depth += {"{": 1, "}": -1}.get(mark, 0)
        if depth < 0:
            break
    if depth:
        raise ValueError("its braces do not match")
    made: str = convert(latex(formula), display="block" if display else "inline")
    unknown = re.findall(r"\\[A-Za-z]+", made)
    if unknown:
        raise ValueError(f"{unknown[0]} is no command that the converter knows")
    return made.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")


class Scripts(SphinxPostTransform):
    """Formulas in running text: every ``_`` and ``^`` outside code. No line ends in 5 %, ±0.1 and ε = 1."""

    default_priority = 400
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Part each text with formulas in it."""
        for text in list(self.document.findall(nodes.Text)):
            above = text.parent
            if isinstance(
                above, nodes.literal | nodes.FixedTextElement | nodes.raw | nodes.math | nodes.comment
            ):
                continue
            if not re.search("[_^%±=]", text):
                continue
            parts: list[nodes.Node] = [
                nodes.math(piece, braced(piece)) if formula else nodes.Text(together(piece, "\u00a0"))
                for piece, formula in formulas(str(text))
            ]
            above.replace(text, parts)


def visit(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """Called by Sphinx for each formula."""
    formula = node.astext().strip().removeprefix("`").removesuffix("`")
    display = isinstance(node, nodes.math_block)
    try:
        made = mathml(formula, display=display)
    except Exception as reason:
        logging.getLogger(__name__).warning("no MathML for %r: %s", formula, reason, location=node)
    else:
        writer.body.append(f'<div class="formula">{made}</div>\n' if display else made)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Called from ``conf.py``."""
    app.add_post_transform(Scripts)
    app.add_html_math_renderer("mathml", inline_renderers=(visit, None), block_renderers=(visit, None))
