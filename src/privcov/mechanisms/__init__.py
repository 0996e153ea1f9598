"""The registry: every mechanism by name, the defaults, and the names that are refused."""

from __future__ import annotations

from typing import Any

from privcov.errors import ParameterError
from privcov.mechanisms.adaptive import Adaptive
from privcov.mechanisms.base import Mechanism
from privcov.mechanisms.eigenvectors import Eigenvectors
from privcov.mechanisms.frobenius import Frobenius
from privcov.mechanisms.gaussian import Gaussian
from privcov.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss
from privcov.mechanisms.joint_gaussian import JointGaussian
from privcov.mechanisms.kapralov_talwar import KapralovTalwar
from privcov.mechanisms.laplace import Laplace
from privcov.mechanisms.matrix_bingham import MatrixBingham
from privcov.mechanisms.power_method import PowerMethod
from privcov.mechanisms.separate import Separate
from privcov.mechanisms.symmetric_wishart import SymmetricWishart
from privcov.mechanisms.wishart import Wishart
from privcov.privacy import Loss

MECHANISMS: dict[str, type[Mechanism]] = {
    "symmetric-wishart": SymmetricWishart,
    "gaussian": Gaussian,
    "frobenius": Frobenius,
    "laplace": Laplace,
    "eigenvectors": Eigenvectors,
    "kapralov-talwar": KapralovTalwar,
    "power-method": PowerMethod,
    "matrix-bingham": MatrixBingham,
    "johnson-lindenstrauss": JohnsonLindenstrauss,
    "wishart": Wishart,
    "separate": Separate,
    "adaptive": Adaptive,
    "joint-gaussian": JointGaussian,
}

DEFAULTS = {"pure": "symmetric-wishart", "approximate": "gaussian", "zcdp": "gaussian"}

WITHDRAWN = {
    "sn": "the 2016 Wishart mechanism was withdrawn by its authors: its output has a different support for "
    "neighbouring tables, so with probability at least 1 − e^−ε it reveals which of the two it saw. "
    "symmetric-wishart repairs it, at the same pure guarantee.",
}


def find(mechanism: str | Mechanism, *, loss: Loss, as_published: bool = False, **options: Any) -> Mechanism:
    """The mechanism meant by a name, able to promise this kind of loss; ``auto`` is ``privcov.planning``'s.

    ``as_published`` takes the constants of its paper in place of the tight ones.
    """
    if isinstance(mechanism, str):
        if mechanism in WITHDRAWN:
            raise ParameterError("E208", WITHDRAWN[mechanism])
        if mechanism not in MECHANISMS:
            raise ParameterError(
                "E209", f"there is no mechanism {mechanism!r}.", f"Choose one of {', '.join(MECHANISMS)}."
            )
        name, kind = mechanism, MECHANISMS[mechanism]
        known = kind.choices()
        if strange := sorted(set(options) - set(known)):
            raise ParameterError(
                "E209", f"{name} has no option {strange[0]!r}.", f"It has: {', '.join(sorted(known))}."
            )
        if as_published and not kind.as_published:
            raise ParameterError("E209", f"{name} has no published variant.", "Leave --as-published out.")
        published = kind.as_published if as_published else {}
        mechanism = kind.from_words({**published, **options})
    elif options or as_published:
        raise ParameterError("E209", "options need a mechanism given by its name.")
    mechanism.check(loss)
    return mechanism
