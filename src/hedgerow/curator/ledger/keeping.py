"""To begin a file of heads, and an owner's word that a chain which misses some of its heads is to be gone on with."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hedgerow.curator.ledger.balances import DATASET, Account, Balance, read_balances
from hedgerow.curator.ledger.chain import ACCEPT, KEY
from hedgerow.curator.ledger.checks import checked_text
from hedgerow.curator.ledger.heads import BEGUN, NONE, NOT_SAID, HeadLine, Heads
from hedgerow.curator.ledger.ledger import Ledger
from hedgerow.curator.ledger.ledger_tables import LedgerTables
from hedgerow.curator.ledger.sql_tables import entries, head
from hedgerow.curator.ledger.transactions import JoinedTransaction
from hedgerow.errors import LedgerError


def named_key(ledger: Ledger) -> str | None:
    """The public key of the service, as the chain has it last."""
    with ledger.database.reading() as connection:
        found = [entry.what for entry in LedgerTables(connection).entries(entries.c.kind == KEY)]
    return found[-1] if found else None


def keep_heads(ledger: Ledger) -> Heads:
    """For a ledger that was verified: begin the key and the file where there were none, and go on with them from now on."""
    heads = ledger.database.heads
    assert heads is not None
    if named_key(ledger) is None:
        _name_key(ledger, heads.make_own_key())
    if not heads.exists:
        heads.begin()
        heads.kept(ledger.head())
    heads.ready()
    return heads


@dataclass(frozen=True)
class AfterEnd:
    """What signed lines of the file of heads say of the time after the end of a ledger, as after an older copy was put back.

    balances: accounts as they were last; spent: what each has spent after that end
    all_spent, all_ceilings: whether nothing else was spent, and no other ceiling was set. Lines of an older version do not say it
    """

    balances: dict[Account, Balance]
    spent: dict[Account, tuple[Fraction, Fraction]]
    all_spent: bool
    all_ceilings: bool

    @property
    def closed(self) -> list[str]:
        """Datasets that were closed by then."""
        return sorted(balance.dataset for balance in self.balances.values() if balance.closed)


def after_end(ledger: Ledger) -> AfterEnd:
    """Lines whose change never came to the database count as spent."""
    heads, last = ledger.database.heads, ledger.head().seq
    if heads is None or not heads.exists or heads.key_of_file() != named_key(ledger):
        return AfterEnd({}, {}, False, False)
    key, found, with_ceilings = heads.key_of_file(), dict[Account, Balance](), True
    lines = [line for line in heads.lines() if not isinstance(line, HeadLine) or (line.word == BEGUN and line.head.seq > last)]
    good = [line for line in lines if isinstance(line, HeadLine) and line.spent not in ("", NOT_SAID) and line.signed_by(key)]
    for line in good:
        said = read_balances(line.spent)
        found |= said
        with_ceilings &= line.spent == NONE or any(balance.epsilon is not None for balance in said.values())  # the dataset always has one
    there, after, zero = {balance.account: balance for balance in ledger.balances()}, {}, Fraction(0)
    for account, balance in found.items():
        own = there.get(account, Balance(*account))
        after[account] = max(zero, balance.spent - own.spent), max(zero, balance.spent_delta - own.spent_delta)
    all_said = bool(lines) and len(good) == len(lines)
    return AfterEnd(found, after, all_said, all_said and with_ceilings)


def accept(ledger: Ledger, why: str, keep_ceilings: bool = False) -> tuple[list[Balance], Path | None]:
    """Go on with the chain as it is, and say so in it. What may still be spent is unknown, so every ceiling is set to what is spent.

    Returns the accounts whose ceilings were lowered, with the ceilings from before (the lower one, where the file of heads has another than
    the ledger), and where the old file of heads is now.
    """
    heads, reason = ledger.database.heads, checked_text(why.strip(), "why")
    if heads is None:
        raise LedgerError("heads: it is not known where they are; expected the curator's folder. Nothing was changed.")
    if not reason or len(reason) > 500:
        raise LedgerError("why: expected a reason of at most 500 characters, which the ledger will keep. Nothing was changed.")
    found = ledger.verify()
    if found.by_itself:
        raise LedgerError(
            f"the ledger is {found}\nIt is not sound by itself, so it cannot be accepted. Nothing was changed. Restore a backup."
        )
    if found.sound:
        raise LedgerError("accept: the ledger is sound, and has all its heads: there is nothing to accept. Nothing was changed.")
    known = after_end(ledger).balances
    key = heads.make_own_key()
    last = heads.good_lines()[-1:] if heads.exists else []
    aside = heads.set_aside()
    lowered: list[Balance] = []
    with ledger.database.writing() as connection:
        connection.execute(head.update().values(noted=None))
        tables = LedgerTables(connection, lock=True)
        lost = f"the last head that was written down was {last[0].head}" if last else "no head was written down"
        tables.append(ACCEPT, "", what=f"{reason} ({lost})")
        within = Ledger(JoinedTransaction(ledger.database, connection))
        there = {balance.account: balance for balance in within.balances()}
        for account in () if keep_ceilings else sorted({*there, *known}):
            balance, whole = there.get(account, Balance(*account)), there.get((account[0], DATASET, ""))
            was = balance.limited_by(known.get(account, balance))
            if whole is None or whole.epsilon is None or whole.closed or was.epsilon is None or balance.used_up():
                continue
            who = {balance.scope: balance.name} if balance.name else {}
            within.ceiling(balance.dataset, balance.spent, balance.spent_delta, what="accepted: what was left is not known", **who)
            lowered.append(was)
    if named_key(ledger) != key:
        _name_key(ledger, key)
    keep_heads(ledger)
    return lowered, aside


def _name_key(ledger: Ledger, key: str) -> None:
    with ledger.database.writing() as connection:
        LedgerTables(connection, lock=True).append(KEY, "", what=key)
