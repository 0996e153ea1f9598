"""Names for the types of arrays that every module shares, such as ``Floats``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Float64 numbers of any shape."""
Matrix = NDArray[np.float64]
"""Float64 numbers in two dimensions: said for readers, the checker cannot tell."""
