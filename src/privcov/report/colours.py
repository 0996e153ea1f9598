"""The one table of colours: plots, reports, the workbench and the manual's figures take theirs from here.

A colour is a pair, for light and for dark paper. A mechanism has one colour, one dash pattern and one mark everywhere;
other lines take places in order.
"""

from __future__ import annotations

import re

INK = ("#1f2733", "#e4e8ee")
PAPER = ("#ffffff", "#14181f")
LINES = (
    ("#1f6fae", "#6cb4ee"),  # blue
    ("#b8451f", "#f08a62"),  # vermilion
    ("#1f7d55", "#63c79a"),  # green
    ("#93428e", "#d493d0"),  # purple
    ("#8a6809", "#d9b34c"),  # ochre
    ("#46627a", "#9db8cf"),  # slate
    ("#75513f", "#c9a08d"),  # brown
    ("#0a7d8c", "#4fc8d6"),  # teal
    ("#c2185b", "#ff7fa8"),  # crimson
    ("#5f7d0e", "#b3d455"),  # olive
    ("#4a4fc4", "#a3a7ff"),  # indigo
    ("#d06a00", "#ffb35c"),  # orange
    ("#3a3f47", "#d5dae1"),  # charcoal
    ("#a8577e", "#f5c3d8"),  # rose
)
"""No two are alike on either paper, and each stands out from it by three to one at least."""

_MECHANISMS = (
    "symmetric-wishart",
    "gaussian",
    "frobenius",
    "laplace",
    "eigenvectors",
    "kapralov-talwar",
    "power-method",
    "matrix-bingham",
    "johnson-lindenstrauss",
    "wishart",
    "separate",
    "adaptive",
    "joint-gaussian",
)


def place_of(mechanism: str) -> int:
    """The place in the table that a mechanism has in every figure.

    >>> LINES[place_of("symmetric-wishart")]
    ('#1f6fae', '#6cb4ee')
    """
    return _MECHANISMS.index(mechanism)


def between(pair: tuple[str, str]) -> str:
    """A tone for paper of which nothing is known.

    >>> between(("#000000", "#ffffff"))
    '#7f7f7f'
    """
    light, dark = (bytes.fromhex(tone[1:]) for tone in pair)
    return "#" + bytes((one + other) // 2 for one, other in zip(light, dark, strict=True)).hex()


def following_the_page(svg: str) -> str:
    """A figure drawn for light paper, with a style sheet that gives it its other tones where the page is dark.

    What does not know of style sheets still shows the figure as it was.
    """
    darker = dict(LINES)
    rules = [f"svg{{fill:{INK[1]}}}"]
    for tone in sorted(set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))):
        other = darker.get(tone, _grey(tone))
        if other is not None:
            rules += [f'[style*="{what}: {tone}"]{{{what}:{other}!important}}' for what in ("fill", "stroke")]
    style = f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda found: f"{found[1]}\n {style}", svg, count=1)


def _grey(tone: str) -> str | None:
    """The grey between dark paper and light ink that answers to one between black and white."""
    levels = bytes.fromhex(tone[1:])
    if len(set(levels)) > 1:
        return None
    ink, paper = bytes.fromhex(INK[1][1:]), bytes.fromhex(PAPER[1][1:])
    share = levels[0] / 255
    return "#" + bytes(round(i + share * (p - i)) for i, p in zip(ink, paper, strict=True)).hex()
