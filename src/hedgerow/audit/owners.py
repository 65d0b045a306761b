"""One owner's row under attack by owners who count together with it: through all that they see of a secure sum, told to each other.

Those who look are honest but curious: they follow the protocol, and put together their rows, their shares of the noise, the pieces that
they were sent, the sums that were opened, and the result. The secure sum and the shares are those of a run; only the network is this
process. PROOF.md, M4 says that they see ε if there are at most `tolerated` of them, and M5 what one more of them sees.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.known_shares import epsilon_without_one
from hedgerow.accounting.meter import Budget
from hedgerow.audit.attack import Audit, Finding, finding_of
from hedgerow.audit.bounds import FALSE_ALARM
from hedgerow.audit.outputs import Columns
from hedgerow.audit.queries import attacks, tables_of
from hedgerow.engines.memory import MemoryRows
from hedgerow.mechanisms.shares import WholeNumbers
from hedgerow.multiparty.secure_sum import ShamirSum, from_bytes
from hedgerow.private_table import PrivateTable
from hedgerow.queries.attacks import Attack

SECONDS = 600.0  # for a round of one process: only a fault takes so long
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Owners:
    """Who counts together: owners - tolerated shares are a whole draw. The first `looking` look, the last one's row is attacked."""

    owners: int
    tolerated: int
    looking: int

    @property
    def whole(self) -> int:
        return self.owners - self.tolerated

    def claimed(self, epsilon: str) -> Fraction:
        """What holds against those who look, of one count: ε, or what is left of it against one more than is tolerated."""
        if self.looking == self.tolerated + 1:
            return epsilon_without_one(Fraction(epsilon), Fraction(1), self.whole)
        return Fraction(epsilon)

    def __str__(self) -> str:
        return f"{self.owners} owners, t = {self.tolerated}, {self.looking} look{'s' if self.looking == 1 else ''}"


# t below half is what a run allows; t = k - 1, where each adds a whole draw, is what k - 1 who look would need.
CASES = (Owners(3, 1, 1), Owners(5, 2, 2), Owners(3, 2, 2))
READER = Owners(3, 0, 0)  # t = 0: who knows no share, and so sees no more than the release
KNOWS = Owners(3, 0, 1)  # t = 0: an owner who has kept its share sees more than ε, and no more than M5 says


class Rounds:
    """What all send to each other, in this process: each round ends when all have sent."""

    def __init__(self, owners: int) -> None:
        self.present = list(range(1, owners + 1))
        self.sent: dict[int, bytes | Mapping[int, bytes]] = {}
        self.all_sent, self.all_got = (threading.Barrier(owners, timeout=SECONDS) for _ in range(2))


class Seat:
    """One owner's place in the rounds (`multiparty.secure_sum.Exchange`), which keeps what it was sent."""

    def __init__(self, rounds: Rounds, number: int) -> None:
        self.rounds, self.number, self.present = rounds, number, rounds.present
        self.got: list[dict[int, bytes]] = []

    def exchange(self, messages: bytes | Mapping[int, bytes], most: int, doing: str) -> dict[int, bytes]:
        self.rounds.sent[self.number] = messages
        self.rounds.all_sent.wait()
        sent = {peer: self.rounds.sent[peer] for peer in self.present if peer != self.number}
        self.got.append({peer: each if isinstance(each, bytes) else each[self.number] for peer, each in sent.items()})
        self.rounds.all_got.wait()
        return dict(self.got[-1])


class KeptSum(ShamirSum):
    """A secure sum of which the owner keeps what it put in: its own counts and share."""

    own: WholeNumbers

    def sum(self, numbers: WholeNumbers) -> NDArray[np.int64]:
        self.own = numbers.ravel().copy()
        return super().sum(numbers)


def audit_owners(cases: Sequence[Owners], epsilon: str, runs: int, progress: Callable[[float], None] | None = None) -> Audit:
    """All cases, which claim the same; their verdicts share the false-alarm rate of one in a million."""
    (claimed,) = {who.claimed(epsilon) for who in cases}
    findings = []
    for done, who in enumerate(cases, start=1):
        findings.append(attack_owner(who, epsilon, runs, FALSE_ALARM / (2 * len(cases))))
        if progress is not None:
            progress(done / len(cases))
    return Audit(f"owners who count together at ε = {epsilon}", float(claimed), 0.0, runs, len(cases), tuple(findings))


def attack_owner(who: Owners, epsilon: str, runs: int, level: float) -> Finding:
    """The event in the view of those who look that tells best whether the last owner has one row more. level: as of `attack_query`."""
    attack = attacks()["leaf_counts"]  # all that can be counted together
    with ThreadPoolExecutor(who.owners) as pool:
        without, with_row = (_views(attack, who, Fraction(epsilon), side, runs, pool) for side in (False, True))
    claimed = float(who.claimed(epsilon))
    return finding_of(f"{who}, ε = {epsilon}", attack.why, without, with_row, claimed, 0.0, level, classifier=False)


def _views(attack: Attack, who: Owners, epsilon: Fraction, with_row: bool, runs: int, pool: ThreadPoolExecutor) -> Columns:
    usual = tables_of(tuple(attack.rows), attack.copies)
    attacked = tables_of((*attack.rows, attack.more), attack.copies) if with_row else usual
    views = [_view(attack, who, epsilon, usual, attacked, pool) for _ in range(-(-runs // attack.runs))]
    return {name: np.concatenate([view[name] for view in views]) for name in views[0]}


def _view(attack: Attack, who: Owners, epsilon: Fraction, usual: MemoryRows, attacked: MemoryRows, pool: ThreadPoolExecutor) -> Columns:
    """One run of all owners, as those who look see it together: a line for each of the attack's runs."""
    query, price, rounds = attack.make(usual.codebook), epsilon * attack.prices, Rounds(who.owners)
    seats = [Seat(rounds, number) for number in rounds.present]
    sums = [KeptSum(seat, who.whole) for seat in seats]

    def count(place: int) -> Numbers:
        engine = attacked if place == who.owners - 1 else usual
        table = PrivateTable(engine, Budget(price).reserve(price, "audit"), secure_sum=sums[place])
        return attack.lines(table.ask(query, price)).astype(np.float64)

    answers = list(pool.map(count, range(who.owners)))
    result = answers[0]
    known = sum((each.own for each in sums[: who.looking]), start=np.zeros(result.size, dtype=object))
    seen = {"the sum without what they added": result - known.astype(np.float64).reshape(result.shape)}
    for seat in seats[: who.looking]:
        pieces, opened = seat.got[:2]
        for peer in rounds.present[who.looking :]:
            seen[f"the piece of party {peer} for party {seat.number}"] = _numbers(pieces[peer], result)
            seen[f"what party {peer} opened"] = _numbers(opened[peer], result)
    return {f"{name}, number {j + 1}": numbers[:, j] for name, numbers in seen.items() for j in range(result.shape[1])}


def _numbers(data: bytes, like: Numbers) -> Numbers:
    return from_bytes(data, like.size).astype(np.float64).reshape(like.shape)
