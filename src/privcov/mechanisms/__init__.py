"""The registry: every mechanism by name, the defaults, and the names that are refused."""

from __future__ import annotations

from typing import Any

from privcov.errors import ParameterError
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
    "joint-gaussian": JointGaussian,
}

DEFAULTS = {"pure": "symmetric-wishart", "approximate": "gaussian", "zcdp": "gaussian"}

WITHDRAWN = {
    "sn": "the 2016 Wishart mechanism was withdrawn by its authors: its output has a different support for "
    "neighbouring tables, so with probability at least 1 − e^−ε it reveals which of the two it saw. "
    "symmetric-wishart repairs it, at the same pure guarantee.",
}


def find(mechanism: str | Mechanism, *, loss: Loss, as_published: bool = False, **options: Any) -> Mechanism:
    """The mechanism meant by a name (or ``auto``), able to promise this kind of loss.

    ``as_published`` takes the constants of its paper in place of the tight ones.
    """
    if isinstance(mechanism, str):
        name = DEFAULTS[loss.kind] if mechanism == "auto" else mechanism
        if name in WITHDRAWN:
            raise ParameterError("E208", WITHDRAWN[name])
        if name not in MECHANISMS:
            raise ParameterError(
                "E209", f"there is no mechanism {name!r}.", f"There are: {', '.join(MECHANISMS)}."
            )
        known = {f for f in MECHANISMS[name].__dataclass_fields__}
        if strange := sorted(set(options) - known):
            raise ParameterError(
                "E209", f"{name} has no option {strange[0]!r}.", f"It has: {', '.join(sorted(known))}."
            )
        if as_published and not MECHANISMS[name].as_published:
            raise ParameterError("E209", f"{name} has no published variant.", "Leave --as-published out.")
        published = MECHANISMS[name].as_published if as_published else {}
        mechanism = MECHANISMS[name].from_words({**published, **options})
    elif options or as_published:
        raise ParameterError("E209", "options belong to a mechanism given by name.")
    mechanism.check(loss)
    return mechanism
