"""The one directory the page may see: names below it go in and out, and nothing else is a name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from privcov.errors import InputError, OutputError

MOST_FILES = 500
DEEPEST = 3
KINDS = {
    "data": (
        *(name + packed for name in (".csv", ".tsv") for packed in ("", ".gz", ".zst")),
        ".parquet",
        ".pq",
    ),
    "schemas": (".toml",),
    "ledgers": (".ledger",),
    "releases": (".release.json",),
}


@dataclass(frozen=True, kw_only=True)
class Directory:
    """A directory that was resolved once; a name is looked up again, and resolved again, at every use."""

    root: Path

    @classmethod
    def of(cls, path: str | Path) -> Directory:
        """The directory at a path, free of symbolic links."""
        try:
            root = Path(path).resolve(strict=True)
        except OSError as reason:
            raise InputError("E119", f"cannot open the directory {path}: {reason.strerror}.") from None
        if not root.is_dir():
            raise InputError(
                "E119", f"{path} is not a directory.", "Give the directory that holds the table."
            )
        return cls(root=root)

    def name_of(self, path: str | Path) -> str:
        """The name of a file below the directory, as the page says it."""
        target = Path(path).resolve()
        if not target.is_relative_to(self.root):
            raise InputError(
                "E119",
                f"{path} is not in the directory that the workbench serves.",
                "Name one that holds it: --directory.",
            )
        return target.relative_to(self.root).as_posix()

    def existing(self, name: str) -> Path:
        """The file of a name that came from the page. Links that lead out of the directory are not followed."""
        path = self._below(name)
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            raise InputError("E119", f"there is no file {name!r} here.", "Pick one from the list.") from None
        if not target.is_relative_to(self.root) or not target.is_file():
            raise InputError("E119", f"there is no file {name!r} here.", "Pick one from the list.")
        return target

    def new(self, name: str, *, ending: str) -> Path:
        """Where a new file of this name goes: a plain name, in the directory itself, that is not taken."""
        path = self._below(name)
        if path.parent != self.root or name.startswith(".") or not name.endswith(ending) or len(name) > 120:
            raise OutputError(
                "E406",
                f"the name of a new file must be a plain name that ends in {ending}, got {name!r}.",
                f"For example people{ending}.",
            )
        if os.path.lexists(path):
            raise OutputError("E401", f"{name} already exists.", "Choose another name: nothing is replaced.")
        return path

    def files(self) -> dict[str, list[str]]:
        """The names of what can be picked, by kind; hidden files and links that lead out are left out."""
        found: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for folder, folders, names in os.walk(self.root):
            here = Path(folder)
            depth = len(here.relative_to(self.root).parts)
            folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < DEEPEST else []
            for name in sorted(names):
                kind = next((k for k, endings in KINDS.items() if name.lower().endswith(endings)), None)
                if kind is None or name.startswith(".") or not name.isprintable():
                    continue
                if len(found[kind]) < MOST_FILES and (here / name).resolve().is_relative_to(self.root):
                    found[kind].append((here / name).relative_to(self.root).as_posix())
        return found

    def _below(self, name: str) -> Path:
        parts = Path(name).parts
        plain = name.isprintable() and 0 < len(name) <= 1000 and "\\" not in name
        if not plain or not parts or Path(name).is_absolute() or ".." in parts:
            raise InputError("E119", "a file must be in the directory that the workbench serves.")
        return self.root.joinpath(*parts)
