"""`hedgerow curator`: administration of a curator, directly in its database; the service may run meanwhile."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow import formatting
from hedgerow.cli import curator_books, curator_status
from hedgerow.cli.console import note, say, table, warn
from hedgerow.cli.ledger import Address, existing, packages
from hedgerow.cli.places import CSVOption, QueryOption, TableOption
from hedgerow.errors import LedgerError, PlanError

if TYPE_CHECKING:
    from hedgerow.curator.ledger.accounts import Accounts
    from hedgerow.curator.ledger.ledger import Ledger
    from hedgerow.curator.ledger.registry import Registry

LARGE = 10  # a ceiling above it promises little
app = typer.Typer(
    help="A data owner's service: its datasets, ceilings, people and tokens.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.command("upgrade")(curator_books.upgrade)
app.command("accept")(curator_books.accept)
app.command("status")(curator_status.status)
Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="The name of the dataset.", show_default=False)]
Person = Annotated[str, typer.Argument(metavar="PERSON", help="The name of the person.", show_default=False)]
Epsilon = Annotated[str, typer.Option("--epsilon", help="The most that may be spent, such as 2 or 1/3.", show_default=False)]
Delta = Annotated[str, typer.Option("--delta", help="The same for δ.  [default: 0, pure ε alone]", show_default=False)]
Days = Annotated[int, typer.Option("--days", min=1, max=3650, help="How long the token is valid.")]
Purposes = Annotated[
    list[str] | None, typer.Option("--purpose", help="What for, such as research; may be given again.", show_default=False)
]


@app.command("register")
def register(
    address: Address,
    dataset: Dataset,
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="Where the rows are: a CSV or Parquet file, a folder or pattern of them, a DuckDB file or postgresql://user@host/name.",
        ),
    ],
    schema: Annotated[Path, typer.Option("--schema", help="The reviewed schema, in TOML.", show_default=False)],
    epsilon: Epsilon,
    delta: Delta = "0",
    query_table: TableOption = None,
    query: QueryOption = None,
    csv: CSVOption = None,
) -> None:
    """Add a dataset with its reviewed schema and the ceiling of what everybody together may spend on it.

    The place is opened to see that it has the declared columns; no row is read. A name is for ever. A ledger is made
    where there is none yet. ε is counted in the unit of the schema: for one row, or for one person with so many rows.

    Example:

        hedgerow curator register curator/ patients visits.parquet --schema schema.toml --epsilon 2 --delta 1e-5
    """
    from hedgerow.accounting.advice import delta_left
    from hedgerow.accounting.loss import exact_delta
    from hedgerow.accounting.meaning import large_delta, sentence
    from hedgerow.accounting.units import Unit
    from hedgerow.cli.places import EngineName, Place
    from hedgerow.schema.schema import Schema

    packages()
    from hedgerow.curator.ledger.checks import amount_from_zero
    from hedgerow.curator.ledger.registry import check_reviewed

    place = Place(data, query_table, query, EngineName.duckdb, None, csv=csv)
    amount, amount_delta = amount_from_zero(epsilon, "epsilon"), exact_delta(delta)
    reviewed = check_reviewed(Schema.load(schema))  # before a ledger is made for nothing
    with _stores(address, make=True) as (ledger, _, registry), place.rows() as rows:
        others = [registry.get(name) for name in registry.names()]
        made = registry.register(dataset, rows, reviewed)
        ledger.ceiling(dataset, amount, amount_delta)
    for other in others:
        if other is not None and other.place == made.place:
            warn(f"these rows are registered as {other.name!r}, too: what is spent on both adds up for its persons")
    if amount > LARGE:
        warn(f"ε = {formatting.amount(amount)}: {sentence(amount, amount_delta)}. Change it: hedgerow curator ceiling")
    if large := large_delta(amount_delta, reviewed.rows):
        warn(large)
    say(f"registered {dataset}: everybody together may spend {formatting.loss(amount, amount_delta)} for {Unit.of(reviewed).words}")
    say(delta_left(amount_delta) if amount_delta else "it pays for pure ε alone; `hedgerow curator ceiling … --delta 1e-5` adds a δ")
    rows_at = shlex.quote(data) if query_table is None and query is None else "TABLE"
    say(f"next: hedgerow schema check {shlex.quote(str(schema))} {rows_at}      (what does not fit, before anybody pays; for your eyes)")
    say(f"      hedgerow curator analyst {shlex.quote(address)} NAME --dataset {shlex.quote(dataset)} --purpose research")


@app.command("ceiling")
def ceiling(
    address: Address,
    dataset: Dataset,
    epsilon: Epsilon,
    delta: Annotated[
        str | None,
        typer.Option("--delta", help="The same for δ.  [default: as it is; where there was none, that of the dataset]", show_default=False),
    ] = None,
    analyst: Annotated[str | None, typer.Option("--analyst", help="Of this analyst alone.", show_default=False)] = None,
    purpose: Annotated[str | None, typer.Option("--purpose", help="Of this purpose alone.", show_default=False)] = None,
) -> None:
    """Set how much may be spent: by all, by one analyst, or for one purpose. A request must fit under each that applies.

    It may be raised and lowered. Below what is spent already, everything further is refused.

    Example:

        hedgerow curator ceiling curator/ patients --epsilon 0.5 --analyst ada
    """
    with _stores(address) as (ledger, accounts, registry):
        _check_known(registry, dataset)
        before = ledger.balance(dataset, analyst=analyst, purpose=purpose)
        as_it_is = before if before.epsilon is not None else ledger.balance(dataset)  # a new one would exclude δ by accident
        ledger.ceiling(dataset, epsilon, as_it_is.delta or 0 if delta is None else delta, analyst=analyst, purpose=purpose)
        after, whole_now = ledger.balance(dataset, analyst=analyst, purpose=purpose), ledger.balance(dataset)
        granted = {name for grant in accounts.grants() if grant.dataset == dataset for name in (grant.analyst, grant.purpose)}
    who = f"analyst {analyst}" if analyst is not None else f"purpose {purpose}" if purpose is not None else "everybody together"
    if (analyst or purpose) and (analyst or purpose) not in granted:
        warn(f"nothing is granted to or for {analyst or purpose!r} on {dataset} yet, so this ceiling binds nobody; is it spelled right?")
    whole = (whole_now.epsilon or whole_now.spent * 0, whole_now.delta or whole_now.spent * 0)
    if (analyst or purpose) and ((after.epsilon or 0) > whole[0] or (after.delta or 0) > whole[1]):
        note(f"it is above the ceiling of everybody together on {dataset}, {formatting.loss(*whole)}, which refuses first")
    was = "none" if before.epsilon is None else formatting.loss(before.epsilon, before.delta or before.epsilon * 0)
    say(f"{dataset}, {who}: {formatting.loss(after.epsilon or after.spent * 0, after.delta or after.spent * 0)} (before: {was})")


@app.command("unit")
def unit(
    address: Address,
    dataset: Dataset,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """State that what was spent on a dataset was counted in the unit of its schema: once, where the ledger is older than units.

    The service spends in no other. If something else has (a LedgerBudget in Python, with another schema), no unit is right: close the
    dataset, and register the table under another name for what is left.

    Example:

        hedgerow curator unit curator/ patients
    """
    from hedgerow.accounting.units import Unit

    with _stores(address) as (ledger, _, registry):
        found = registry.get(dataset)
        if found is None:
            raise LedgerError(f"dataset {dataset!r} is not known; expected one that was registered. Nothing was changed.")
        stated = Unit.of(found.schema)
        confirm = ledger.balance(dataset).unit is None and not yes
        if confirm and not typer.confirm(f"All that was spent on {dataset!r} is for {stated.words}?"):
            raise PlanError("nothing was stated.")
        ledger.state_unit(dataset, stated)
    say(f"{dataset} is for {stated.words}")


@app.command("close")
def close(
    address: Address,
    dataset: Dataset,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """End a dataset for ever: everything later is refused. What was released stays with those who have it.

    Example:

        hedgerow curator close curator/ patients
    """
    with _stores(address) as (_, _, registry):
        _check_known(registry, dataset)
        if not yes and not typer.confirm(f"Close {dataset!r} for ever?"):
            raise PlanError("nothing was closed.")
        registry.close(dataset)
    say(f"closed {dataset}")


@app.command("analyst")
def analyst(
    address: Address,
    person: Person,
    dataset: Annotated[str, typer.Option("--dataset", help="What the analyst may use.", show_default=False)],
    purposes: Purposes = None,
    days: Days = 90,
) -> None:
    """Let an analyst use a dataset for some purposes. Somebody new is added, and gets a token, which is shown this once.

    Example:

        hedgerow curator analyst curator/ ada --dataset patients --purpose research
    """
    if not purposes:
        raise PlanError("--purpose: got none; expected at least one, such as --purpose research. Nothing was changed.")
    with _stores(address) as (_, accounts, registry):
        _check_known(registry, dataset)
        new = accounts.person(person) is None
        if new:
            accounts.add(person)
        accounts.grant(person, dataset, purposes)
        say(f"{person} may use {dataset} for {', '.join(purposes)}")
        if new:
            _show_token(accounts, person, days)


@app.command("withdraw")
def withdraw(
    address: Address,
    person: Person,
    named: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="The same as --dataset.", show_default=False)] = None,
    option: Annotated[str | None, typer.Option("--dataset", help="What the analyst may use no longer.", show_default=False)] = None,
    purposes: Purposes = None,
) -> None:
    """Take back what an analyst may use a dataset for: all of it, or some purposes. What is under way may end.

    Example:

        hedgerow curator withdraw curator/ ada --dataset patients
    """
    dataset = option or named
    if not dataset or named not in (None, dataset):
        got = "none" if not dataset else f"{named!r} and {option!r}"
        raise PlanError(f"--dataset: got {got}; expected one dataset, such as --dataset patients. Nothing was changed.")
    with _stores(address) as (_, accounts, _):
        accounts.withdraw(person, dataset, purposes or None)
        left = [grant.purpose for grant in accounts.grants(person) if grant.dataset == dataset]
    say(f"{person} may use {dataset} for {', '.join(left) if left else 'nothing'}")


@app.command("token")
def token(
    address: Address,
    person: Person,
    days: Days = 90,
    owner: Annotated[bool, typer.Option("--owner", help="Add the person as another owner, who may decide everything.")] = False,
) -> None:
    """Make a new token for somebody, and show it once. This is how an owner gets in again whose token has expired or is lost.

    Example:

        hedgerow curator token curator/ owner
    """
    from hedgerow.curator.ledger.accounts import OWNER

    with _stores(address) as (_, accounts, _):
        if owner:
            accounts.add(person, OWNER)
        elif accounts.person(person) is None:
            known = ", ".join(each.name for each in accounts.people()) or "nobody yet: the first `hedgerow serve` makes the owner"
            raise LedgerError(f"person {person!r} is not known ({known}); expected one of them, or --owner to add an owner.")
        _show_token(accounts, person, days)


@app.command("revoke")
def revoke(
    address: Address,
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The id of the token, as `show` lists it.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every token that is valid, of owners too, as after a restore.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --all: do not ask.")] = False,
) -> None:
    """End a token now, or all of them.

    Example:

        hedgerow curator revoke curator/ 3f9a0c11d2e45b67

        hedgerow curator revoke curator/ --all
    """
    if (id is None) != every:
        raise PlanError("ID, --all: expected the id of one token, or --all for every token that is valid. Nothing was revoked.")
    with _stores(address) as (_, accounts, _):
        if id is not None:
            say(f"revoked a token of {accounts.revoke(id).person}")
            return
        if not yes and not typer.confirm("End every token, so that everybody needs a new one?"):
            raise PlanError("nothing was revoked.")
        people = sorted({record.person for record in accounts.revoke_all()})
    say(f"revoked every token that was valid: of {', '.join(people) or 'nobody'}")
    for person in people:
        say(f"  to make a new one: {shlex.join(['hedgerow', 'curator', 'token', address, person])}")


@app.command("show")
def show(address: Address) -> None:
    """Show the datasets and where their rows are, who may use them, and the tokens; what was spent is in `hedgerow ledger show`.

    Example:

        hedgerow curator show curator/
    """
    with _stores(address) as (_, accounts, registry):
        found = [registry.get(name) for name in registry.names()]
        rows = [(one.name, "closed" if one.closed else "open", one.place) for one in found if one is not None]
        table("datasets", ["name", "", "where its rows are"], rows)
        table("who may use what", ["analyst", "dataset", "purpose"], [(g.analyst, g.dataset, g.purpose) for g in accounts.grants()])
        roles = {person.name: person.role for person in accounts.people()}
        states = [(t.id, t.person, roles[t.person], accounts.state(t), t.made, t.expires) for t in accounts.tokens()]
        table("tokens", ["id", "person", "role", "", "made", "expires"], states)


@app.command("lost")
def lost(address: Address) -> None:
    """List requests that were paid for and have no answer, with the reason: left by a crash, or lost by an older version.

    While the service runs, what is under way is among them: it was opened, and its answer is not stored yet. The same list is on the
    owner's page of the ledger, without those.

    Example:

        hedgerow curator lost curator/
    """
    from hedgerow.cli.lost import show_lost
    from hedgerow.curator.http.recovery import lost_requests
    from hedgerow.curator.http.service_context import Curator

    with existing(address).database as database:
        found = lost_requests(Curator.of(database, Path()))
    show_lost(found)
    say(f"{len(found)} request(s) were paid for and have no answer")


@contextmanager
def _stores(address: str, make: bool = False) -> Iterator[tuple[Ledger, Accounts, Registry]]:
    packages()
    from hedgerow.curator.ledger.accounts import Accounts
    from hedgerow.curator.ledger.database import open_database
    from hedgerow.curator.ledger.ledger import Ledger
    from hedgerow.curator.ledger.registry import Registry

    ledger = Ledger(open_database(address, make))

    with ledger.database as database:
        yield ledger, Accounts(database), Registry(database)


def _check_known(registry: Registry, dataset: str) -> None:
    if registry.get(dataset) is None:
        raise LedgerError(f"dataset {dataset!r} is not known; expected one that was registered. Nothing was changed.")


def _show_token(accounts: Accounts, person: str, days: int) -> None:
    older = [token.id for token in accounts.tokens(person) if accounts.state(token) == "valid"]
    text, record = accounts.issue(person, timedelta(days=days))
    say(f"the token of {person}, shown this once: {text}")
    say(f"its id is {record.id}; it is valid until {record.expires}")
    if older:
        say(f"older ones are still valid: {', '.join(older)}. To end one: hedgerow curator revoke")
