"""To begin a file of heads, and an owner's word that a chain which misses some of its heads is to be gone on with."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from hedgerow.curator.ledger.balances import Account, Balance, read_spent
from hedgerow.curator.ledger.chain import ACCEPT, KEY
from hedgerow.curator.ledger.checks import checked_text
from hedgerow.curator.ledger.heads import BEGUN, NOT_SAID, HeadLine, Heads
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


def spent_after(ledger: Ledger) -> tuple[dict[Account, tuple[Fraction, Fraction]], bool]:
    """What each account has spent after the end of this ledger, as signed lines of the file of heads say; and whether they say all of it.

    Lines of an older version do not say it. Those whose change never came to the database count as spent.
    """
    heads, last = ledger.database.heads, ledger.head().seq
    if heads is None or not heads.exists or heads.key_of_file() != named_key(ledger):
        return {}, False
    key, found = heads.key_of_file(), dict[Account, tuple[Fraction, Fraction]]()
    lines = [line for line in heads.lines() if not isinstance(line, HeadLine) or (line.word == BEGUN and line.head.seq > last)]
    good = [line for line in lines if isinstance(line, HeadLine) and line.spent not in ("", NOT_SAID) and line.signed_by(key)]
    for line in good:
        found |= read_spent(line.spent)
    there, after, zero = {balance.account: balance for balance in ledger.balances()}, {}, Fraction(0)
    for account, (epsilon, delta) in found.items():
        own = there.get(account, Balance(*account))
        after[account] = max(zero, epsilon - own.spent), max(zero, delta - own.spent_delta)
    return after, bool(lines) and len(good) == len(lines)


def accept(ledger: Ledger, why: str, keep_ceilings: bool = False) -> tuple[list[Balance], Path | None]:
    """Go on with the chain as it is, and say so in it. What may still be spent is unknown, so every ceiling is set to what is spent.

    Returns the accounts whose ceilings were lowered, as they were, and where the old file of heads is now.
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
        for balance in [] if keep_ceilings else within.balances():
            if balance.epsilon is not None and not within.balance(balance.dataset).closed and not balance.used_up():
                who = {balance.scope: balance.name} if balance.name else {}
                within.ceiling(balance.dataset, balance.spent, balance.spent_delta, what="accepted: what was left is not known", **who)
                lowered.append(balance)
    if named_key(ledger) != key:
        _name_key(ledger, key)
    keep_heads(ledger)
    return lowered, aside


def _name_key(ledger: Ledger, key: str) -> None:
    with ledger.database.writing() as connection:
        LedgerTables(connection, lock=True).append(KEY, "", what=key)
