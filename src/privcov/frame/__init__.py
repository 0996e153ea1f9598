"""A row-norm bound that fits the data, bought with a share of the loss.

``choice`` takes one of a public list of bounds privately, ``walk`` is the sparse-vector walk of the mechanism
``adaptive``, and ``radii`` sums what each bound would cut off, on any engine.
"""
