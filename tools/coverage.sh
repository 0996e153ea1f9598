#!/usr/bin/env bash
# Branch coverage of the quick tests, with a floor: [tool.coverage.report] in pyproject.toml says which.
#
#     tools/coverage.sh                  # everything that the README's command runs
#     tools/coverage.sh tests/spec       # a part of it; the floor is for the whole
#     tools/coverage.sh --report         # what a run has measured already: PRIVCOV_COVERAGE=1 .ci/run does so
#
# Children that a test kills, and processes that it starts afresh, are not seen: the figure is a lower bound.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" != "--report" ]; then
  rm -f .coverage .coverage.*
  .venv/bin/python -m pytest -q --cov --cov-report= --cov-fail-under=0 "$@"
fi
echo "── least covered"
.venv/bin/coverage report --sort=cover --skip-covered --fail-under=0 | sed -n '1,22p'
echo "── in all"
.venv/bin/coverage report --format=total
.venv/bin/coverage report > /dev/null   # fails below the floor
