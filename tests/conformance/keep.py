"""Small releases of every kind as files, and what they say: ``python tests/conformance/keep.py`` wrote ``kept/``.

Files that stewards have published must load, verify and answer as they did, whatever becomes of the code. So this is
run once for a version of the format, and what it wrote is not written again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import privcov as pc
from privcov.mechanisms import MECHANISMS
from privcov.mechanisms.base import AdditiveMechanism
from privcov.noise.randomness import Randomness, rehearsal
from privcov.releases.signing import keygen

KEPT = Path(__file__).parent / "kept"
LOSSES = {
    "pure": pc.PureDP(epsilon=2, neighbours="replace-one"),
    "approximate": pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="replace-one"),
    "zcdp": pc.ZCDP(rho="0.5", neighbours="replace-one"),
    "add-remove": pc.ApproxDP(epsilon=2, delta="1e-6", neighbours="add-remove"),
}
COLUMNS = {
    "age": {"lower": 0, "upper": 100},
    "größe (cm)": {"lower": 120.5, "upper": 210},
    "sex": {"levels": ["F", "M"]},
}


def people(rows: int = 400) -> Any:
    """The same invented people every time."""
    import pandas

    numbers = np.arange(rows)
    return pandas.DataFrame(
        {
            "age": (20 + numbers * 7 % 60).astype(float),
            "größe (cm)": 150.5 + numbers * 13 % 45,
            "sex": np.where(numbers % 3 == 0, "F", "M"),
        }
    )


def released(name: str, promise: str, randomness: Randomness | None = None) -> pc.Release:
    """A release of the people by one mechanism."""
    schema = pc.Schema.from_dict({"columns": COLUMNS})
    return pc.release(people(), schema=schema, loss=LOSSES[promise], mechanism=name, randomness=randomness)


def cases() -> Iterator[tuple[str, str]]:
    """Every mechanism with every kind of loss that it can promise, and one that hides the number of rows."""
    yield from ((name, promise) for name, kind in MECHANISMS.items() for promise in kind.kinds)
    yield "gaussian", "add-remove"


def bits() -> dict[str, str]:
    """Digests of what exact mechanisms publish with the noise of a rehearsal: the same on every machine."""
    return {
        f"{name} {promise}": digest(released(name, promise, rehearsal(7)))
        for name, promise in cases()
        if issubclass(MECHANISMS[name], AdditiveMechanism)
    }


def digest(release: pc.Release | pc.StratifiedRelease) -> str:
    """A digest of all that a release says, but for the day and the version."""
    document = release.to_dict()
    document.pop("signature", None)
    for changing in ("created", "version"):
        document["certificate"].pop(changing, None)
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def write(folder: Path = KEPT) -> None:
    """Every file, signed by a key whose public half lies beside them, and a page of what they said."""
    folder.mkdir()
    key = keygen()
    (folder / "key.public.hex").write_text(key.public.raw.hex() + "\n")
    said = {}
    for name, promise in cases():
        release = released(name, promise)
        file = f"{name}-{promise}.release.json"
        release.save(folder / file, key=key)
        said[file] = {"says": digest(release), "corner": float(release.second_moment(raw=True)[0, 0])}
    estimate = pc.estimate_gaussian(
        np.random.default_rng(1).normal(size=(4000, 2)),
        columns=["x", "y"],
        loss=pc.ZCDP(rho="0.5", neighbours="replace-one"),
        largest_variance=4,
    )
    estimate.save(folder / "gaussian.estimate.json", key=key)
    (folder / "said.json").write_text(json.dumps({"files": said, "bits": bits()}, indent=1) + "\n")


STRATA = {
    "strata-zcdp.release.json": {"loss": LOSSES["zcdp"], "other": "unknown"},
    "strata-total-pure.release.json": {"loss": LOSSES["pure"], "total_share": "0.3"},
}
"""Strata were there later; the second file has a total beside them."""


def write_strata(folder: Path = KEPT) -> None:
    """The same for releases of strata, with a key of their own: that of the others is gone."""
    key, said = keygen(), json.loads((folder / "said.json").read_text())
    (folder / "strata-key.public.hex").write_text(key.public.raw.hex() + "\n")
    said["strata"] = {}
    for file, words in STRATA.items():
        made = pc.release(people(), schema=pc.Schema.from_dict({"columns": COLUMNS}), by="sex", **words)
        made.save(folder / file, key=key)
        said["strata"][file] = {"says": digest(made), "corners": corners(made)}
    (folder / "said.json").write_text(json.dumps(said, indent=1) + "\n")


FRAMED = {
    "framed-scales-pure.release.json": {"loss": LOSSES["pure"], "frame": "scales"},
    "framed-shape-approximate.release.json": {"loss": LOSSES["approximate"], "frame": "shape"},
    "framed-counted-zcdp.release.json": {"loss": LOSSES["zcdp"], "frame": "scales", "cut": "counted"},
}
"""Private frames were there later still."""


def growing(rows: int = 4000) -> Any:
    """People whose height follows their age, so that a shape mixes the two."""
    made = people(rows)
    made["größe (cm)"] = 140 + made["age"] / 2 + np.arange(rows) % 5
    return made


def write_framed(folder: Path = KEPT) -> None:
    """The same for releases in a private frame, with a key of their own."""
    key, said = keygen(), json.loads((folder / "said.json").read_text())
    (folder / "framed-key.public.hex").write_text(key.public.raw.hex() + "\n")
    said["framed"] = {}
    for file, words in FRAMED.items():
        made = pc.release(growing(), schema=pc.Schema.from_dict({"columns": COLUMNS}), **words)
        made.save(folder / file, key=key)
        said["framed"][file] = {
            "says": digest(made),
            "rounds": [one.name for one in made.certificate.rounds],
            "corner": float(made.second_moment(raw=True)[0, 0]),
            "means": made.mean().tolist(),
        }
    (folder / "said.json").write_text(json.dumps(said, indent=1) + "\n")


DECLARED = {
    "weights": ({"weight": "weight", "largest_weight": 4, "weight_power": 0.5}, {"loss": "zcdp"}),
    "persons": ({"person": "id", "max_rows_per_person": 2}, {"loss": "pure"}),
    "person-means": ({"person": "id", "per_person": "mean"}, {"loss": "pure"}),
    "derived": ({"derived": {"older": "age * age", "tall": "`größe (cm)` > 180"}}, {"loss": "zcdp"}),
    "exhaustive": (
        {"columns": {**COLUMNS, "sex": {"levels": ["F", "M"], "exhaustive": True, "otherwise": "M"}}},
        {"loss": "pure"},
    ),
    "missing": (
        {
            "columns": {
                "age": {**COLUMNS["age"], "missing": "indicator", "label": "Age", "unit": "years"},
                "größe (cm)": {**COLUMNS["größe (cm)"], "fill": 170},
                "sex": COLUMNS["sex"],
            }
        },
        {"loss": "zcdp"},
    ),
    "scales": (
        {"columns": {**COLUMNS, "age": {**COLUMNS["age"], "centre": 40, "scale": 20}}, "row_norm_bound": 2},
        {"loss": "approximate"},
    ),
    "focus": ({}, {"loss": "approximate", "emphasis": ["age"]}),
    "row-norm": ({}, {"loss": "zcdp", "row_norm": "private"}),
    "strata-of-two": (
        {"columns": {**COLUMNS, "town": {"levels": ["A", "B"]}}},
        {"loss": "zcdp", "by": ["sex", "town"], "other": "elsewhere"},
    ),
    "strata-weights": ({"weight": "weight", "largest_weight": 4}, {"loss": "add-remove", "by": "sex"}),
    "strata-framed": ({}, {"loss": "zcdp", "by": "sex", "frame": "scales"}),
}
"""What a schema may declare beside columns, and what a release may be asked for: the schema's part, the order's."""


def households(rows: int = 400) -> Any:
    """The same people two to an id, with a town and a weight."""
    made, numbers = people(rows), np.arange(rows)
    return made.assign(weight=1.0 + numbers % 4, id=numbers // 2, town=np.where(numbers % 2 == 0, "A", "B"))


def declared(name: str) -> pc.Release | pc.StratifiedRelease:
    """A release of what is declared so."""
    said, words = DECLARED[name]
    facts = {"columns": COLUMNS, "missing": "zero-row", "ignore_extra": True, **said}
    return pc.release(
        households(), schema=pc.Schema.from_dict(facts), **{**words, "loss": LOSSES[words["loss"]]}
    )


def write_declared(folder: Path = KEPT) -> None:
    """The same for what schemas and orders may say, with a key of their own."""
    key, said = keygen(), json.loads((folder / "said.json").read_text())
    (folder / "declared-key.public.hex").write_text(key.public.raw.hex() + "\n")
    said["declared"] = {}
    for name in DECLARED:
        made = declared(name)
        made.save(folder / f"declared-{name}.release.json", key=key)
        said["declared"][name] = {"says": digest(made), "answers": answers(made)}
    (folder / "said.json").write_text(json.dumps(said, indent=1) + "\n")


def answers(made: pc.Release | pc.StratifiedRelease) -> dict[str, dict[str, Any]]:
    """What is read from a release, or from every one of its strata, before anything is repaired."""
    parts = dict(made) if isinstance(made, pc.StratifiedRelease) else {"whole": made}
    return {
        name: {
            "rows": one.rows,
            "columns": list(one.columns),
            "squares": np.diag(one.second_moment(raw=True)).tolist(),
        }
        for name, one in parts.items()
    }


def corners(made: pc.StratifiedRelease) -> list[float]:
    """The raw noisy counts of every stratum and of the total, as they are read."""
    return [float(one.second_moment(raw=True)[0, 0]) for one in (*made.values(), made.total())]


if __name__ == "__main__":
    write()
    write_strata()
    write_framed()
    write_declared()
