"""``python -m privcov``."""

from privcov.cli import run

run()
