"""Private frames: centres, scales and a radius for the rows, bought with a share of the loss; and a bound on row norms.

``terms`` has the price of a frame from public facts; ``framing`` carries it out: questions (``counting``, ``shaping``)
and what follows from their answers (``fitting``). ``choice`` takes one of a public list of bounds privately, ``walk``
is the sparse-vector walk of the mechanism ``adaptive``, and ``radii`` sums what each bound would cut off.
"""
