"""``privcov ledger``: open, show, list and verify the account of a privacy budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from privcov.cli.losses import as_loss, loss_options
from privcov.cli.output import json_option, note, print_json, say, say_line, say_prose
from privcov.errors import BudgetError, VerificationError

if TYPE_CHECKING:
    from privcov.ledger import Balance, Ledger
    from privcov.ledger.entries import Entry

_BAR = 30


@click.group(name="ledger")
def command() -> None:
    """Keep a budget that cannot be overspent: in a file, or in PostgreSQL (postgresql://…) for a team.

    A ledger is private: it holds a secret key, and it shows which releases read the same table.

    Example: privcov ledger init census.ledger --epsilon 3 --neighbours replace-one
    """


@command.command(name="init")
@click.argument("where")
@loss_options
@click.option(
    "--concentrated", is_flag=True, help="Count epsilon and delta as zCDP from the start; more releases fit."
)
@json_option
def init(where: str, concentrated: bool, as_json: bool, **loss_words: Any) -> None:
    """Open a new ledger with a budget: --epsilon, or --epsilon and --delta, or --rho. It is never replaced.

    WHERE is a new file, or an address (postgresql://…).

    Example: privcov ledger init census.ledger --epsilon 3 --neighbours replace-one
    """
    from privcov.ledger import Ledger

    budget = as_loss(**loss_words)
    ledger = Ledger.init(where, budget, concentrated=concentrated)
    if as_json:
        print_json(_balance(ledger.balance()))
        return
    say(f"Budget: {budget}.")
    named = "ADDRESS" if "://" in where else where
    note(f"Spend from it: privcov release DATA --schema SCHEMA --ledger {named}")


@command.command(name="show")
@click.argument("where")
@json_option
def show(where: str, as_json: bool) -> None:
    """Show a ledger: its budget, the amounts spent and left, and the number of releases.

    WHERE is the file of the ledger, or its address.

    Example: privcov ledger show census.ledger
    """
    from privcov.ledger import Ledger

    ledger = Ledger.open(where)
    balance = ledger.balance()
    if as_json:
        print_json(_balance(balance))
        return
    account = balance.account
    say_line(f"{ledger.name}: {balance.budget}")
    say("")
    if balance.before is not None:
        say(f"Since entry {balance.turned_at} the rest of the budget is counted as zCDP.")
        for word, total in balance.before.total.items():
            say(bar(word, spent=balance.before.spent[word], total=total) + " (before)")
    for word, total in account.total.items():
        if total:
            say(bar(word, spent=account.spent[word], total=total))
    say(f"\n{_times(balance.releases, 'release')} recorded.")
    if balance.burned:
        say_prose(
            f"{_times(balance.burned, 'payment')} without a recorded release: the budget is spent all the same."
        )
    say_prose(
        f"End of the chain: {balance.head[:20]}…. Keep all of it elsewhere (--json prints it): ledger verify --head "
        "then finds an older ledger that was put back."
    )


@command.command(name="log")
@click.argument("where")
@json_option
def log(where: str, as_json: bool) -> None:
    """List all payments in order, and which releases read the same table. Private: do not publish it.

    WHERE is the file of the ledger, or its address.

    Example: privcov ledger log census.ledger
    """
    from privcov.ledger import Ledger
    from privcov.report.tables import table

    entries = Ledger.open(where).log()
    if as_json:
        print_json([_entry(entry) for entry in entries])
        return
    done = {entry.facts["entry"]: entry for entry in entries if entry.kind == "done"}
    lines = [_line(entry, done.get(entry.number)) for entry in entries if entry.kind != "done"]
    say(table(["entry", "when", "what", "price", "release"], lines, left=5))


@command.command(name="verify")
@click.argument("where")
@click.option(
    "--head",
    help="The end of the chain as you kept it: finds an older ledger that was put back.  [default: none]",
)
@json_option
def verify(where: str, head: str | None, as_json: bool) -> None:
    """Check that no entry was altered, removed, added, moved or paid too little. Exit code 4 if one was.

    WHERE is the file of the ledger, or its address.

    Example: privcov ledger verify census.ledger
    """
    from privcov.ledger import Ledger, store_for

    ledger = Ledger(store_for(where))
    try:
        found = ledger.verify(head=head)
    except BudgetError as reason:
        if reason.code != "E305":
            raise
        found = (reason.sentence,)
    if as_json:
        print_json({"whole": not found, "found": list(found)})
    else:
        for line in found:
            say(line)
    if found:
        raise VerificationError(
            "E610", f"{ledger.name} did not pass verification.", "Do not use it until you know why."
        )
    if not as_json:
        say_line(f"{ledger.name} is intact: no entry was altered, removed or added.")


def bar(word: str, *, spent: Any, total: Any) -> str:
    """One amount as a bar: spent, of the total."""
    from privcov.ledger.rules import short
    from privcov.privacy import display

    full = math.ceil(_BAR * spent / total)
    return (
        f"  {word:<8} {'█' * full}{'░' * (_BAR - full)}  {display(spent) if spent else 0} of {short(total)} spent, "
        f"{short(total - spent)} left"
    )


def left_words(ledger: Ledger) -> str:
    """The rest of the budget after a release; the release is made, so nothing is an error any more."""
    from privcov.ledger.rules import amount_text, short

    try:
        account = ledger.balance().account
    except BudgetError as reason:
        return f"note: {reason}"
    parts = [
        f"{amount_text(word, short(left))} of {short(account.total[word])}"
        for word, left in account.left.items()
        if account.total[word]
    ]
    return "Budget left in the ledger: " + ", ".join(parts)


def _balance(balance: Balance) -> dict[str, Any]:
    from privcov.ledger.entries import loss_facts, texts

    account = balance.account
    return {
        "budget": loss_facts(balance.budget),
        "rule": account.rule,
        "total": texts(account.total),
        "spent": texts(account.spent),
        "left": texts(account.left),
        "turned_at": balance.turned_at,
        "spent_before": None if balance.before is None else texts(balance.before.spent),
        "releases": balance.releases,
        "burned": balance.burned,
        "head": balance.head,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    same = {} if entry.same_table_as is None else {"same_table_as": entry.same_table_as}
    return {"number": entry.number, "kind": entry.kind, "created": entry.created, **entry.facts, **same}


def _line(entry: Entry, done: Entry | None) -> list[str]:
    from privcov.ledger.entries import loss_of
    from privcov.privacy import display, exact

    def words(amounts: dict[str, str]) -> str:
        pairs = sorted(amounts.items(), reverse=True)  # rho or epsilon, then delta
        return ", ".join(f"{word} {display(exact(text))}" for word, text in pairs if text != "0")

    what, price, release = entry.kind, "", ""
    if entry.kind == "opened":
        what = f"opened: {loss_of(entry.facts['budget'])}"
    elif entry.kind == "turned":
        what = f"turned into zCDP: {words(entry.facts['account'])}"
    else:
        what, price = entry.facts["mechanism"], words(entry.facts["price"])
        release = "none recorded" if done is None else f"sha256 {done.facts['release'][:12]}…"
        if done is not None and done.same_table_as is not None:
            release += f", same table as entry {done.same_table_as}"
    return [str(entry.number), entry.created, what, price, release]


def _times(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
