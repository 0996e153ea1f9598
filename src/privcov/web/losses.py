"""The loss that three fields mean: the kind, its amounts as exact decimal text, and who counts as neighbours."""

from __future__ import annotations

from privcov.errors import ParameterError
from privcov.privacy import ZCDP, ApproxDP, Loss, PureDP
from privcov.web.asking import Question, Refused, at, text

EPSILON_POLICY_CAP = 10
"""The page does not go beyond what the command line asks ``--i-understand`` for."""


def as_loss(given: Question) -> Loss:
    """The loss; a refusal belongs to the field of the amount that is wrong.

    >>> print(as_loss({"kind": "pure", "epsilon": "0.1", "neighbours": "replace-one"}))
    pure differential privacy, epsilon = 0.1, replace-one
    """
    with at("kind"):
        kind = text(given, "kind")
        neighbours = text(given, "neighbours") or None
        amounts = {word: text(given, word) for word in ("epsilon", "delta", "rho")}
    if kind == "zcdp":
        with at("rho"):
            return ZCDP(rho=amounts["rho"], neighbours=neighbours)  # type: ignore[arg-type]
    with at("epsilon"):
        pure = PureDP(epsilon=amounts["epsilon"], neighbours=neighbours)  # type: ignore[arg-type]
        if pure.epsilon > EPSILON_POLICY_CAP:
            raise ParameterError(
                "E202",
                f"epsilon {amounts['epsilon']} is above {EPSILON_POLICY_CAP} and protects people very little.",
                "Choose a smaller one; only the command line allows more (--i-understand).",
            )
    if kind == "pure":
        return pure
    if kind == "approximate":
        with at("delta"):
            return ApproxDP(epsilon=pure.epsilon, delta=amounts["delta"], neighbours=pure.neighbours)
    raise Refused([("kind", ParameterError("E291", "kind must be pure, approximate or zcdp."))])
