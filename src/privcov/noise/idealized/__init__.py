"""Random unit vectors with a quadratic preference: the Bingham law, and chains of it in shrinking complements.

Idealized float64 samplers for large dimensions. The laws they aim at, and why no tuning can change them, are on
``docs/proofs/bingham.md`` and ``docs/proofs/blocked-chain.md``.
"""

from privcov.noise.idealized.bingham import sample_bingham
from privcov.noise.idealized.chain import sample_chain

__all__ = ["sample_bingham", "sample_chain"]
