"""A curator's folder, and everything that somebody could change in it by hand: what was changed, and what notices."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from hedgerow import Categorical, Schema, Target
from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.chain import NOTHING_YET, LedgerEntry
from hedgerow.curator.ledger.database import FILE, open_database
from hedgerow.curator.ledger.heads import ENDING, KEY_FILE
from hedgerow.curator.ledger.keeping import keep_heads
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.paid_requests import IdempotencyKey
from hedgerow.curator.ledger.verification import Replay
from hedgerow.release.signing import make_key

SCHEMA = Schema([Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
RELEASE = "application/vnd.hedgerow.release+json"
BACKUP, SENT = "older.sqlite", "sent.heads"  # beside the folder
CHAIN, ROWS, HEADS, COPIES = "the chain", "digests in the chain", "the file of heads", "the stored answers"
Change = Callable[[Path], None]
Forger = Callable[[list[LedgerEntry]], list[LedgerEntry]]


def make_folder(root: Path) -> Path:
    """A curator that has paid for three answers, with its heads, copies of releases, a copy from before the last ones, and sent heads."""
    folder = root / "curator"
    (root / "rows.csv").write_text("smoker,class\nno,a\n")
    curator = Curator.open(folder)
    keep_heads(curator.ledger)
    curator.accounts.first_owner()
    for name in ("ada", "bob"):
        curator.accounts.add(name)
        curator.accounts.issue(name)
    curator.registry.register("patients", root / "rows.csv", SCHEMA)
    curator.ledger.ceiling("patients", 2)
    curator.ledger.ceiling("patients", "1.5", analyst="ada")
    for name in ("ada", "bob"):
        curator.accounts.grant(name, "patients", ["research"])
    curator.accounts.withdraw("bob", "patients")
    curator.accounts.revoke(curator.accounts.tokens("bob")[0].id)
    for number, who in enumerate(("ada", "ada", "bob")):
        key, request = f"job{number}", IdempotencyKey(f"mine {number}", f"{number}" * 64)
        curator.ledger.reserve("patients", who, "research", "0.2", what=f"fit {number}", key=key, request=request)
        curator.ledger.opened(key)
        answer = curator.answers.settle_and_store(who, f"mine {number}", f"{number}" * 64, key, f'{{"job": {number}}}'.encode(), RELEASE)
        (curator.releases / f"{key}.json").write_bytes(answer.content)
        if number == 0:
            curator.database.copy_to(root / BACKUP)
            shutil.copy(folder / (FILE + ENDING), root / "older.heads")
    curator.ledger.opened(curator.ledger.reserve("patients", "ada", "research", "0.1", what="lost", key="open").key)
    curator.ledger.release(curator.ledger.reserve("patients", "ada", "research", "0.1", key="given back").key)
    curator.close()
    shutil.copy(folder / (FILE + ENDING), root / SENT)
    return folder


# ------------------------------------------------------------ tools


def run_sql(folder: Path, *statements: str) -> None:
    """As whoever owns the file: the triggers are dropped, and put back."""
    file = sqlite3.connect(folder / FILE, isolation_level=None)
    triggers = file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        file.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        file.execute(statement)
    for _, text in triggers:
        file.execute(text)
    file.close()


def sql(*statements: str) -> Change:
    return lambda folder: run_sql(folder, *statements)


def written_anew(forger: Forger) -> Change:
    """All hashes, balances and the head are computed again, so that the database agrees with itself."""

    def change(folder: Path) -> None:
        with open_database(folder) as database:
            entries = forger(list(Ledger(database).entries()))
        previous, replay, statements = NOTHING_YET, Replay(), ["DELETE FROM ledger_entries", "DELETE FROM ledger_balances"]
        for seq, entry in enumerate(entries, 1):
            sealed = replace(entry, seq=seq, previous=previous).sealed()
            previous = sealed.hash
            assert replay.step(sealed) is None, sealed
            statements.append(f"INSERT INTO ledger_entries VALUES ({_values(*asdict(sealed).values())})")
        for balance in replay.balances.values():
            amounts = [None if amount is None else text_of_fraction(amount) for amount in (balance.epsilon, balance.delta)]
            spent = [text_of_fraction(balance.spent), text_of_fraction(balance.spent_delta)]
            unit = None if balance.unit is None else str(balance.unit)
            row = _values(*balance.account, *amounts, *spent, int(balance.closed), unit)
            statements.append(f"INSERT INTO ledger_balances VALUES ({row})")
        run_sql(folder, *statements, f"UPDATE ledger_head SET seq = {len(entries)}, hash = '{previous}'")

    return change


def _values(*values: object) -> str:
    return ", ".join("NULL" if value is None else repr(value) for value in values)


def lines(change: Callable[[list[str]], list[str]]) -> Change:
    """The file of heads, line by line; the first names the key."""

    def apply(folder: Path) -> None:
        path = folder / (FILE + ENDING)
        path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))

    return apply


def without(kinds: set[str], key: str) -> Forger:
    return lambda entries: [entry for entry in entries if not (entry.key == key and entry.kind in kinds)]


def altered(kind: str, **fields: str) -> Forger:
    def forger(entries: list[LedgerEntry]) -> list[LedgerEntry]:
        number = next(i for i, entry in enumerate(entries) if entry.kind == kind)
        return [replace(entry, **fields) if i == number else entry for i, entry in enumerate(entries)]  # type: ignore[arg-type]

    return forger


def reopened(folder: Path) -> None:
    written_anew(without({"settle", "answer"}, "job2"))(folder)
    run_sql(folder, "DELETE FROM curator_answers WHERE reservation = 'job2'")
    (folder / "releases" / "job2.json").unlink()


def put_back(folder: Path) -> None:
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
        (folder / name).unlink(missing_ok=True)
    shutil.copy(folder.parent / BACKUP, folder / FILE)


def remove_database(folder: Path) -> None:
    """A new one is made in its place."""
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
        (folder / name).unlink(missing_ok=True)
    key = folder / KEY_FILE
    key.rename(folder / "aside")
    open_database(folder).close()
    (folder / "aside").rename(key)


def other_key(folder: Path) -> None:
    for name in (KEY_FILE, f"{KEY_FILE}.pub"):
        (folder / name).unlink()
    make_key(folder / KEY_FILE, "other")


def named_other_key(folder: Path) -> None:
    """The chain names another key, with hashes that are right, and the file of heads is made with it."""
    shutil.copytree(folder, folder.parent / "other")
    for name in (KEY_FILE, f"{KEY_FILE}.pub", FILE + ENDING):
        (folder.parent / "other" / name).unlink()
    public = make_key(folder.parent / "other" / KEY_FILE, "other").text
    written_anew(altered("key", what=public))(folder)


def of(name: str) -> Callable[[Path], Path]:
    return lambda folder: folder / "releases" / name


LAST = "(SELECT max(seq) FROM ledger_entries)"
RAISED = LedgerEntry(0, "2026-01-01T00:00:00Z", "ceiling", None, "patients", None, None, "", "9", "0", "", unit="row")

TAMPERINGS: dict[str, tuple[str, Change]] = {
    # entries
    "an amount in an entry": (CHAIN, sql("UPDATE ledger_entries SET epsilon = '0.01' WHERE kind = 'settle'")),
    "who an entry is about": (CHAIN, sql("UPDATE ledger_entries SET analyst = 'bob' WHERE key = 'job0'")),
    "an entry taken out": (CHAIN, sql("DELETE FROM ledger_entries WHERE seq = 9")),
    "two entries swapped": (CHAIN, sql(*(f"UPDATE ledger_entries SET seq = {b} WHERE seq = {a}" for a, b in ((5, 99), (8, 5), (99, 8))))),
    "the last entry taken out": (CHAIN, sql(f"DELETE FROM ledger_entries WHERE seq = {LAST}")),
    "an entry added without its hash": (
        CHAIN,
        sql(
            f"INSERT INTO ledger_entries SELECT {LAST} + 1, \"when\", kind, 'new', dataset, analyst, purpose, what, epsilon, delta, "
            "previous, hash, unit, digest FROM ledger_entries WHERE key = 'job0' AND kind = 'reserve'"
        ),
    ),
    "an entry added at the end, its hash, balances and head computed": (HEADS, written_anew(lambda entries: [*entries, RAISED])),
    "the last entries taken out, balances and head computed": (HEADS, written_anew(lambda entries: entries[:-2])),
    "a reservation taken out, all hashes computed anew": (HEADS, written_anew(without({"reserve", "open"}, "open"))),
    "a settled amount, all hashes computed anew": (HEADS, written_anew(altered("settle", epsilon="0.01"))),
    "a time, all hashes computed anew": (HEADS, written_anew(altered("ceiling", when="2020-01-01T00:00:00Z"))),
    "another key named, all hashes computed anew": (HEADS, named_other_key),
    # what follows from them
    "a ceiling": (CHAIN, sql("UPDATE ledger_balances SET ceiling_epsilon = '100' WHERE scope = 'dataset'")),
    "what was spent": (CHAIN, sql("UPDATE ledger_balances SET spent_epsilon = '0'")),
    "the unit": (CHAIN, sql("UPDATE ledger_balances SET unit = 'person: id, at most 9 rows' WHERE scope = 'dataset'")),
    "a reservation opened again: its settle taken out, hashes computed anew": (HEADS, reopened),
    "a reservation opened again: its settle taken out": (CHAIN, sql("DELETE FROM ledger_entries WHERE key = 'job2' AND kind = 'settle'")),
    # the other tables
    "an answer's content": (ROWS, sql("UPDATE curator_answers SET content = x'7b7d' WHERE reservation = 'job0'")),
    "two answers swapped": (
        ROWS,
        sql("UPDATE curator_answers SET reservation = CASE reservation WHEN 'job0' THEN 'job1' ELSE 'job0' END WHERE person = 'ada'"),
    ),
    "an answer given to somebody else": (ROWS, sql("UPDATE curator_answers SET person = 'bob' WHERE reservation = 'job1'")),
    "an answer taken out": (ROWS, sql("DELETE FROM curator_answers WHERE reservation = 'job1'")),
    "an answer put in": (
        ROWS,
        sql(
            "INSERT INTO curator_answers SELECT person, 'new', request, 'open', \"when\", content_type, content FROM curator_answers "
            "WHERE reservation = 'job0'"
        ),
    ),
    "a request given to somebody else": (ROWS, sql("UPDATE curator_requests SET person = 'bob' WHERE reservation = 'job1'")),
    "another request under a key that is paid": (
        ROWS,
        sql(f"UPDATE curator_requests SET request = '{'f' * 64}' WHERE reservation = 'job1'"),
    ),
    "a request taken out": (ROWS, sql("DELETE FROM curator_requests WHERE reservation = 'job1'")),
    "a request put in": (
        ROWS,
        sql("INSERT INTO curator_requests SELECT 'open', seq, person, 'new', request, NULL FROM curator_requests LIMIT 1"),
    ),
    "a schema": (ROWS, sql("UPDATE curator_datasets SET schema = replace(schema, 'yes', 'maybe')")),
    "a place": (ROWS, sql('UPDATE curator_datasets SET place = \'{"path": "/etc/passwd"}\'')),
    "a role": (ROWS, sql("UPDATE curator_people SET role = 'owner' WHERE name = 'ada'")),
    "a person put in": (ROWS, sql("INSERT INTO curator_people VALUES ('eve', 'owner', '2026-01-01T00:00:00Z')")),
    "a token given to somebody else": (ROWS, sql("UPDATE curator_tokens SET person = 'owner' WHERE person = 'ada'")),
    "a token put in": (
        ROWS,
        sql(f"INSERT INTO curator_tokens VALUES ('{'a' * 16}', 'owner', '{'a' * 64}', '2026', '2999-01-01T00:00:00Z', NULL)"),
    ),
    "a token that was revoked made valid": (ROWS, sql("UPDATE curator_tokens SET revoked = NULL")),
    "a token that expires later": (ROWS, sql("UPDATE curator_tokens SET expires = '2999-01-01T00:00:00Z' WHERE person = 'ada'")),
    "a grant that was withdrawn made valid": (ROWS, sql("UPDATE curator_grants SET withdrawn = NULL")),
    "a grant for another purpose": (ROWS, sql("UPDATE curator_grants SET purpose = 'sale' WHERE analyst = 'ada'")),
    "a copy of a release in releases/": (COPIES, lambda folder: of("job0.json")(folder).write_text("{}") and None),
    "a release put into releases/": (COPIES, lambda folder: of("mine.json")(folder).write_text("{}") and None),
    # the database as a whole, and the file of heads
    "the database put back to an older copy": (HEADS, put_back),
    "the database removed, a new one made": (HEADS, remove_database),
    "the file of heads removed": (HEADS, lambda folder: (folder / (FILE + ENDING)).unlink()),
    "the file of heads cut off": (HEADS, lines(lambda text: text[:-6])),
    "the file of heads emptied": (HEADS, lines(lambda text: text[:1])),
    "the key in the file of heads": (HEADS, lines(lambda text: [text[0][:-4] + "AAAA", *text[1:]])),
    "a head in the file of heads": (HEADS, lines(lambda text: [*text[:6], text[6].replace(":", ":0", 1)[:-1], *text[7:]])),
    "a signature in the file of heads": (HEADS, lines(lambda text: [*text[:6], text[6][:-8] + "AAAAAA==", *text[7:]])),
    "the key of the service replaced": (HEADS, other_key),
    "the key of the service removed": (HEADS, lambda folder: (folder / KEY_FILE).unlink()),
}
