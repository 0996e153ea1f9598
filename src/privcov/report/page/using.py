"""How to cite what is on a page, how to verify it, how to load it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import fill

from privcov.report.drawing import Markup, join, tag
from privcov.report.page.elements import Section, code, facts, listed

UNNAMED = "people.release.json"
"""What a file is called in examples where it has no name yet."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The file a page is about: its name, the SHA-256 of its bytes, and what was checked when it was read."""

    name: str
    sha256: str
    checks: tuple[str, ...] = ()
    key: str | None = None
    """The name of the public key file it was checked against, if it was."""


def citing(*, title: str, about: str, created: str, source: Source | None) -> Section:
    """A sentence for a list of references, and the same for BibTeX."""
    year = created[:4]
    note = fill(_plain(about), width=76, subsequent_indent=" " * 11)
    if source is not None:
        note += f";\n           SHA-256 {source.sha256}"
    entry = "\n".join(
        [
            "@misc{" + _key(title) + year + ",",
            f"  title = {{{_plain(title)}}},",
            f"  year  = {{{year}}},",
            f"  note  = {{{note}}},",
            "}",
        ]
    )
    digest = "" if source is None else f" SHA-256 {source.sha256}."
    body = [tag("p", f"{title} ({year}). {about}.{digest}"), code(entry)]
    return Section(name="cite", heading="How to cite", body=join(body))


def verifying(*, origin: str, signed: bool, source: Source | None) -> Section:
    """The state of the signature, the digest, and the commands that check both."""
    name = UNNAMED if source is None else source.name
    key = (source.key if source is not None and source.key else "steward.pub") if signed else None
    commands = f"privcov verify {_shell(name)}" + (f" --key {_shell(key)}" if key else "")
    known: list[tuple[str, object]] = [("Signature", origin)]
    if source is not None:
        known.append(("SHA-256 of the file", tag("code", source.sha256, class_="long")))
        commands += f"\nsha256sum {_shell(name)}"
    body: list[Markup] = [facts(known), code(commands)]
    if source is not None and source.checks:
        body += [tag("p", "These checks passed when this page was made:"), listed(source.checks)]
    body.append(tag("p", "This page was computed from the file. If the two differ, trust the file."))
    return Section(name="verify", heading="How to verify", body=join(body))


def rehearsed() -> Section:
    """What there is to do with a rehearsal."""
    words = "A rehearsal cannot be saved and protects nobody, so there is nothing to cite, verify or pass on."
    return Section(name="use", heading="What to do with it", body=tag("p", words))


def loading(*lines: str) -> Section:
    """The lines of Python that give the same numbers."""
    words = "All answers are computed from the release alone, so any number of them costs no further privacy."
    body = [code("\n".join(["import privcov as pc", "", *lines])), tag("p", words)]
    return Section(name="load", heading="How to use it", body=join(body))


def _key(title: str) -> str:
    return re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "release"


def _plain(words: str) -> str:
    """Text for BibTeX: no brace or backslash of a title may end its field."""
    return re.sub(r"[{}\\]", "", words)


def _shell(name: str) -> str:
    """A file's name as one word of a command, whatever is in it."""
    plain = re.fullmatch(r"[\w./][\w./-]*", name, re.ASCII)
    return name if plain else "./" * name.startswith("-") + "'" + name.replace("'", "'\\''") + "'"
