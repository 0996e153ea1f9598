"""The measurements behind ``privcov bench``: ratios in one run, CPU time, never a timed test."""
