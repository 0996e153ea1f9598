"""An auditor that tries to refute what a mechanism promises: replay, goodness of fit, attacks, repeated noise.

>>> import privcov as pc
>>> from privcov.audit import audit
>>> loss = pc.PureDP(epsilon=1, neighbours="replace-one")
>>> audit("laplace", loss=loss, dimension=1, runs=400, levels=(0,)).passed
True
"""

from privcov.audit.entry import LEVELS, audit
from privcov.audit.neighbours import Pair, pair_of, pairs, schema_of
from privcov.audit.replay import Replay, replay
from privcov.audit.report import AuditReport, Finding

__all__ = [
    "audit",
    "AuditReport",
    "Finding",
    "LEVELS",
    "Pair",
    "pair_of",
    "pairs",
    "schema_of",
    "Replay",
    "replay",
]
