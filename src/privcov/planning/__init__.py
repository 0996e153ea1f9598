"""Accuracy before spending: forecasts, the automatic choice, and the budget an accuracy needs.

Nothing here opens a data file or a Gram matrix of people: public facts in, numbers out. The error of a mechanism
is a forecast (``forecast.py``), a plan compares all of them (``plan.py``), ``auto`` takes one (``candidates.py``),
and a target is turned into a budget or a number of rows (``invert.py``).
"""

from privcov.planning.candidates import choose
from privcov.planning.forecast import Forecast, Spread, forecast
from privcov.planning.invert import required_loss, required_rows
from privcov.planning.moments import PublicMoments
from privcov.planning.plan import Plan, accuracy, plan
from privcov.planning.splitting import Split, split

__all__ = [
    "Forecast",
    "Plan",
    "PublicMoments",
    "Split",
    "Spread",
    "accuracy",
    "choose",
    "forecast",
    "plan",
    "required_loss",
    "required_rows",
    "split",
]
