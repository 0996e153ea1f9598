"""Which lazy tables may be read: those whose plan, a public fact, shows that no cell can stop the reading.

A lazy table computes while it is read, which is after the budget is paid. Where it parses or casts, one person's cell
can raise an error, and whether it did is then seen from outside. So a plan is walked before anything is paid, and each
step has to be on a list of those that give typed values whatever the cells hold, row by row. What is not on the list is
refused; nobody needs to know how it might fail. One file for each library; the remedy is always to compute first.
Which steps are listed: docs/explain/sharp-edges.md.
"""
