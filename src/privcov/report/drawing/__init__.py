"""Charts as SVG text, written by hand: no script, no dependency, the same bytes for the same numbers.

Every chart is a function from plain numbers to a ``Markup``, a ``str`` that is safe to put into a page as it is:

    heat_map(labels, values, *, title, description="", columns=None, limit=1.0, signed=True, digits=2)
    spectrum(values, *, title, description="", edge=None, repaired=None, y_label="variance")
    coefficients(estimates, *, title, description="", x_label="")          estimates: [Estimate(…), …]
    curves(lines, *, title, description="", x_label, y_label, here=None, band=None,
           log_x=True, log_y=True, width=440, height=320)                  lines: [Line(…), …]
    ranges(rows, *, title, description="")                                 rows: [Range(…), …]

    Estimate(name=, value=, low=None, high=None)     an infinite end becomes an arrow; without ends, a point
    Line(name=, points=[(x, y), …], bold=False, place=None)    points that a log axis cannot show are left out
    Range(name=, low=, high=, value=, spread=None, noise=None)             a column within its declared bounds
    here=(x, "your ε")   band=(low, high, "range of the matrix itself")

``tag(name, *children, **attributes)`` builds any other markup. It is the one place that escapes: a child that is
not a ``Markup`` is text, whatever is in it. ``text(…)`` and ``join(…)`` go with it.

Colours are CSS custom properties with a fallback that is legible on light and on dark paper: ``--ink``,
``--paper``, ``--accent``, ``--plus``, ``--minus``. ``THEME`` is a style sheet that sets them for both, gives charts
of class ``chart`` the width of their place, and lets those of class ``broad`` keep theirs: put a broad chart into
an element that scrolls. No meaning rests on colour alone: lines differ in dash and mark, negative cells are
crossed by a stroke. No chart has an id, so any number of them can share a page.
"""

from privcov.report.drawing.charts import Estimate, Line, Range, coefficients, curves, ranges, spectrum
from privcov.report.drawing.heat_map import heat_map
from privcov.report.drawing.markup import Markup, join, tag, text
from privcov.report.drawing.theme import THEME

__all__ = [
    "THEME",
    "Estimate",
    "Line",
    "Markup",
    "Range",
    "coefficients",
    "curves",
    "heat_map",
    "join",
    "ranges",
    "spectrum",
    "tag",
    "text",
]
