"""What rows are measured from and in, bought with a share of the loss: a frame, or a bound on the norm of a row.

``terms`` has the price of a frame from public facts; ``framing`` carries it out: questions (``counting``, ``shaping``)
and what follows from their answers (``fitting``). ``choice`` takes one of a public list of bounds privately, ``walk``
is the sparse-vector walk of the mechanism ``adaptive``, and ``radii`` sums what each bound would cut off.
"""
