"""How results show themselves in a notebook: a method that asks the report layer, and only when it is called.

Results live below the layer that draws them, so nothing here or there imports it before a notebook asks. That one
upward step is written down in ``.importlinter``; why it is one: docs/decisions/0011-display.md.
"""

from __future__ import annotations


class Shown:
    """Something that a notebook can show as more than its ``repr``."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from privcov.report.notebook import shown

        return shown(self)
