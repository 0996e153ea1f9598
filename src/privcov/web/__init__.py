"""The workbench: a page on the steward's own machine that drafts, plans, releases and reads.

``guard.py`` decides who may ask, ``server.py`` says where, ``workbench.py`` what. One file each answers:
``drafting.py`` (schemas; ``deriving.py`` their expressions), ``forecasting.py`` and ``charting.py`` (accuracy before
spending), ``releasing.py`` (the ledger and the release). Answers come from the functions the command line calls; the
page in ``assets/`` collects inputs and shows answers. Guide: docs/do/workbench.md. Needs the extra ``web``.
"""
