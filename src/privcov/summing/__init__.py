"""From cells to the exact integer Gram matrix: bounding, adding, checking, on one machine, a cluster or a GPU.

What has rows in its hands is here and in ``table``, ``frame`` and ``publish``, and nowhere else.
"""
