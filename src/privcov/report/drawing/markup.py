"""Markup that cannot be broken into: whatever is not ``Markup`` is text, and is escaped here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_VOID = frozenset({"br", "hr", "meta", "link", "input", "img"})
_MARKS = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
# Characters no document may hold, and those that would reorder or hide the text around a name.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]"
)

Attribute = str | int | float | bool | None


class Markup(str):
    """Text that is already markup. Only ``tag``, ``text`` and ``join`` make it from anything unknown."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as text that shows exactly itself; what could hide or reorder its surroundings becomes �.

    >>> print(text('<b> & "c"'))
    &lt;b&gt; &amp; &quot;c&quot;
    """
    if isinstance(value, Markup):
        return value
    plain = _UNSAFE.sub("\ufffd", str(value))
    return Markup(re.sub("[&<>\"']", lambda mark: _MARKS[mark[0]], plain))


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Markup and text one after the other."""
    return Markup(between.join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: Attribute) -> Markup:
    """One element. An attribute's underscore is a hyphen, a last one is dropped; None and False leave it out.

    >>> print(tag("p", "2 < 3", class_="note", aria_hidden=True, x=1.50))
    <p class="note" aria-hidden="true" x="1.5">2 &lt; 3</p>
    """
    given = "".join(
        f' {_name(word.rstrip("_").replace("_", "-"))}="{_value(value)}"'
        for word, value in attributes.items()
        if value is not None and value is not False
    )
    start = f"<{_name(name)}{given}"
    if name in _VOID:
        return Markup(f"{start}>")
    inside = join(child for child in children if child is not None)
    return Markup(f"{start}>{inside}</{name}>")


def short(value: float) -> str:
    """A coordinate: at most two decimals, and no more characters than it needs.

    >>> short(3.0), short(-0.001), short(12.3456)
    ('3', '0', '12.35')
    """
    given = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if given == "-0" else given


def _value(value: Attribute) -> str:
    if value is True:
        return "true"
    return text(short(value) if isinstance(value, float) else value)


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an element or an attribute")
    return name
