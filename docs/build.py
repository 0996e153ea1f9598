"""Build the documentation site into docs/_build: ``.venv/bin/python docs/build.py``.

Needs the extra ``docs``. A broken link, a page that no section lists, spoilt mathematics and a stale reference are
errors.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DOCS = Path(__file__).parent


def main() -> int:
    """Build everything anew, or with ``--quick`` what has changed; the exit code says whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=DOCS / "_build")
    parser.add_argument("--quick", action="store_true", help="only pages that changed")
    chosen = parser.parse_args()
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        print("The site needs Sphinx. Install it: pip install -e '.[docs]'", file=sys.stderr)
        return 2
    fresh = [] if chosen.quick else ["--fresh-env", "--write-all"]
    where = ["-c", str(DOCS / "site"), "-d", str(chosen.output / ".doctrees"), str(DOCS), str(chosen.output)]
    code: int = build_main(["-q", "-b", "html", "--fail-on-warning", "--keep-going", *fresh, *where])
    if code == 0:
        print(f"built {chosen.output / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
