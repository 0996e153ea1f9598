"""Attacks on privcov as it is, and on privcov with a fault planted for each; prints JSON of what the bench found.

Run as a script: the bench forks, and a process of tests has threads. Faults are planted here alone, and stay.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "canaries"))
from broken_readers import quoted_line_breaks

from privcov.cli import main
from privcov.ledger import holding
from privcov.mechanisms.base import Draw
from privcov.publish import sequence
from privcov_lab.bench import attacks, reliability
from privcov_lab.bench.hostile import Shell


def attacked(part: str, *, most: int, commands: Any = main) -> dict[str, Any]:
    what, cases = attacks.parts(Shell(commands), processes=4, spends=4)[part]
    return reliability.attacked(part, what, cases, most=most)


def keeping(work: Any, bill: Any, draw: Draw, frame: Any) -> Any:
    work.draw = draw
    return work(bill, draw, frame)


def repeating(words: list[str]) -> int:
    Path("made").touch()
    print(words)
    return 0


result: dict[str, Any] = {
    "cases": {
        part: len(cases) for part, (_, cases) in attacks.parts(Shell(main), processes=2, spends=1).items()
    }
}
result["fine"] = {part: attacked(part, most=2) for part in ("second names", "tracebacks", "addresses")}
holding.Held.check = lambda self: None  # type: ignore[method-assign]
Draw.taken = lambda draw: draw  # type: ignore[method-assign, assignment, misc, return-value]
sequence.without_reasons = keeping  # type: ignore[assignment]
attacks.ROUTES = {"with line breaks": quoted_line_breaks}
result["broken"] = {part: attacked(part, most=1) for part in ("second names", "tracebacks", "records")}
result["broken"]["addresses"] = attacked("addresses", most=1, commands=repeating)
print(json.dumps(result))
