"""What one run asked of its private tables, step by step: recorded, or played again beside an earlier run whose answers it is given.

    Asked     a query and its arguments              Counted   exact numbers, the noise as it was drawn, the released numbers
    Charged   an event, and on which reservation     Chosen    scores, who may be chosen, the rate as it was used, the choice

Losses are exact fractions, from what was drawn and not from what was planned. For the exact numbers f of one table and f′ of the other:
discrete Laplace noise of scale b loses ‖f − f′‖₁/b (M1), discrete Gaussian noise ‖f − f′‖₂²/(2σ²) of ρ (M3); a choice at rate r loses at
most r·(max d − min d) in a node, d the differences of the scores of its candidates, whether the score is monotone or not (S4, S5, Z2), and
nodes are disjoint, so that their losses add up for a person with rows in several (U1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, EXPONENTIAL, LOCAL_SENSITIVITY, Event
from hedgerow.accounting.meter import Reservation
from hedgerow.audit.answers import Answers, Drawn, Integers
from hedgerow.audit.content import Parts, difference, parts_of


class Stopped(BaseException):
    """The run need not go on: what is wrong is in its transcript. No `except Exception` of a training function holds it up."""


@dataclass(frozen=True)
class Asked:
    query: str
    given: Parts


@dataclass(frozen=True)
class Charged:
    event: Event
    account: int  # which reservation of the run


@dataclass(frozen=True, eq=False)
class Counted:
    exact: Integers
    mechanism: str
    scale: Fraction
    released: Integers


@dataclass(frozen=True, eq=False)
class Chosen:
    scores: Integers
    allowed: NDArray[np.bool_]
    mechanism: str
    rate: Fraction
    chosen: Integers


Step = Asked | Charged | Counted | Chosen


@dataclass
class _Open:
    """Numbers that are being given noise."""

    exact: Integers
    drawn: list[tuple[str, Fraction]] = field(default_factory=list)
    released: Integers | None = None


@dataclass
class Transcript:
    """One run. before: the run whose answers it is given, if it is a second one.

    wrong:    the first thing that is not as it must be, in words
    shares:   by query, the largest share of its charge that the difference of the tables used up
    loose:    noise that was drawn for no query: what it was added to is not known
    output:   all that came out in the end
    """

    answers: Answers
    seed: int
    before: Transcript | None = None
    steps: list[Step] = field(default_factory=list)
    accounts: list[Reservation] = field(default_factory=list)
    wrong: str = ""
    shares: dict[str, Fraction] = field(default_factory=dict)
    loose: str = ""
    output: Parts = ()
    queries: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.event: Event | None = None
        self._paid: tuple[Event, ...] = ()  # charged together, and not answered yet
        self._open: _Open | None = None
        self._blocks = 0
        self._lost, self._moved, self._excess = Fraction(0), 0, 0  # of the present query; which query lost too much first

    # ------------------------------------------------------------ what happens in a run

    def bytes(self, n: int) -> bytes:
        """Person keys, names: the same bits in both runs, as if they were a first output (U2)."""
        self._blocks += 1
        return hashlib.shake_256(f"hedgerow replay {self.seed} {self._blocks}".encode()).digest(n)

    def ask(self, query: str, given: Any) -> None:
        step = Asked(query, parts_of(given))
        earlier = self._earlier(step, query)
        if isinstance(earlier, Asked) and earlier != step:
            self._stop(f"{query}, query {self.queries + 1}, asks for something else: {difference(earlier.given, step.given)}")
        self.steps.append(step)

    def charge(self, reservation: Reservation, *events: Event) -> None:
        if not any(reservation is known for known in self.accounts):
            self.accounts.append(reservation)
        self.queries, self._paid = self.queries + 1, events
        for event in reversed(events):  # the first is answered first
            self._turn_to(event)
        account = next(i for i, known in enumerate(self.accounts) if known is reservation)
        for step in (Charged(event, account) for event in events):
            earlier = self._earlier(step, f"a charge for {step.event.query}")
            if isinstance(earlier, Charged) and earlier != step:
                self._stop(f"{self._query} is charged otherwise: {difference(parts_of(earlier), parts_of(step))}")
            self.steps.append(step)

    def _turn_to(self, event: Event) -> None:
        """From here on losses are those of this event."""
        self.event, self._lost, self._moved = event, Fraction(0), 0

    def count(self, exact: Integers, event: Event, add: Callable[[], Integers]) -> Integers:
        """Numbers get noise: `add` draws it, through `draw`."""
        if event not in self._paid:
            self._stop(f"{event.query} was answered without being charged first")
        if event != self.event:
            self._turn_to(event)
        self._open = open_ = _Open(np.asarray(exact))
        try:
            released = add()
        finally:
            self._open = None
        if not open_.drawn:
            self._stop(f"{self._query}: numbers were released without fresh noise")
        mechanism, scale = open_.drawn[0]
        if len(open_.drawn) > 1 or not np.array_equal(released, np.asarray(open_.released)):
            self._stop(f"{self._query}: what was released is not the exact numbers with the noise that was drawn")
        if mechanism != event.mechanism:
            self._stop(f"{self._query}: {event.mechanism} was charged, and {mechanism} was drawn")
        step = Counted(open_.exact.copy(), mechanism, scale, released.copy())
        earlier = self._earlier(step, "an answer")
        if isinstance(earlier, Counted):
            if earlier.scale != scale:
                self._stop(f"{self._query}: noise of scale {earlier.scale} on one table, of {scale} on the other")
            self._lose(*_loss_of_counts(earlier, step))
        self.steps.append(step)
        return released

    def draw(self, mechanism: str, scale: Fraction, size: int, real: Drawn) -> Integers:
        """The noise that makes of the exact numbers those that are to be released; the real one where no query is open."""
        open_ = self._open
        if open_ is None:
            self.loose = self.loose or f"{mechanism} noise of scale {scale}"
            return real()
        open_.drawn.append((mechanism, scale))
        if open_.released is not None or size != open_.exact.size:
            return np.zeros(size, dtype=np.int64)  # a second draw, or of another size: found when it is released
        if self.before is None:
            open_.released = np.asarray(self.answers.count(open_.exact, real, self.rng), dtype=np.int64)
        else:
            earlier = self._earlier(None, "noise")
            if not isinstance(earlier, Counted) or earlier.exact.shape != open_.exact.shape:
                self._stop(f"{self._query}: {open_.exact.shape} numbers are answered, and others on the other table")
            open_.released = earlier.released
        return (open_.released - open_.exact).ravel()

    def choose(self, scores: Integers, allowed: NDArray[np.bool_], rate: Fraction, mechanism: str, real: Drawn) -> Integers:
        if self.event is None:
            self._stop("a private choice was made without being charged first")
        if len(self._paid) > 1:  # a charge for each choice, and one for what is counted after them
            self._turn_to(self._paid[0])
            self._paid = self._paid[1:]
        if mechanism != (EXPONENTIAL if self.event.mechanism == LOCAL_SENSITIVITY else self.event.mechanism):
            self._stop(f"{self._query}: {self.event.mechanism} was charged, and {mechanism} was drawn")
        if self.before is None:
            chosen = np.asarray(self.answers.choose(scores, allowed, real, self.rng), dtype=np.int64)
            self.steps.append(Chosen(scores.copy(), allowed.copy(), mechanism, rate, chosen))
            return chosen.copy()
        earlier = self._earlier(None, "a choice")
        how = (earlier.rate, earlier.mechanism) if isinstance(earlier, Chosen) else None
        if not isinstance(earlier, Chosen) or how != (rate, mechanism) or not np.array_equal(earlier.allowed, allowed):
            self._stop(f"{self._query}: the candidates, the rate or the mechanism of a choice are not the same on both tables")
        step = Chosen(scores.copy(), allowed.copy(), mechanism, rate, earlier.chosen)
        self._lose(*_loss_of_choice(earlier, step))
        self.steps.append(step)
        return earlier.chosen.copy()

    def finish(self, output: Parts) -> None:
        """The run has ended by itself; what came out must be the same as before."""
        self.output = output
        if self.before is None or self.wrong:
            return
        if len(self.steps) < len(self.before.steps):
            gone = self.before.steps[len(self.steps)]
            name = gone.query if isinstance(gone, Asked) else type(gone).__name__.lower()
            self.wrong = f"after query {self.queries} one run goes on ({name}) and the other ends: {difference(self.before.output, output)}"
        elif found := difference(self.before.output, output):
            self.wrong = f"all answers were the same, and what comes out is not: {found}"

    # ------------------------------------------------------------ how it is compared

    @property
    def _query(self) -> str:
        return f"{self.event.query if self.event else 'nothing'}, query {self.queries}"

    def _stop(self, words: str) -> NoReturn:
        self.wrong = self.wrong or words
        raise Stopped(words)

    def _earlier(self, step: Step | None, what: str) -> Step | None:
        """The step of the run before at this place, of the same kind."""
        if self.before is None:
            return None
        if len(self.steps) >= len(self.before.steps):
            self._stop(f"after query {self.queries} one run ends, and the other goes on with {what}")
        earlier = self.before.steps[len(self.steps)]
        if step is not None and type(earlier) is not type(step):
            name = earlier.query if isinstance(earlier, Asked) else type(earlier).__name__.lower()
            self._stop(f"after query {self.queries} one run goes on with {what}, and the other with {name}")
        return earlier

    def _lose(self, loss: Fraction, moved: int, words: str) -> None:
        """Of the charge of the present query, with what its earlier numbers lost."""
        assert self.event is not None
        self._lost, self._moved = self._lost + loss, self._moved + moved
        gaussian = self.event.mechanism == DISCRETE_GAUSSIAN
        charged = self.event.rho if gaussian else self.event.epsilon
        share = self._lost / charged
        self.shares[self.event.query] = max(share, self.shares.get(self.event.query, Fraction(0)))
        if share > 1 and (not self.wrong or self._excess == self.queries):
            self._excess = self.queries
            lost = f"that is {'ρ' if gaussian else 'ε'} = {_short(self._lost)}, and {_short(charged)} was charged"
            self.wrong = f"{self._query}: {words.format(self._moved)}; {lost}"


def _loss_of_counts(first: Counted, second: Counted) -> tuple[Fraction, int, str]:
    """(the loss, by how much the numbers differ, that in words)"""
    moved = [int(a) - int(b) for a, b in zip(first.exact.ravel(), second.exact.ravel(), strict=True) if a != b]
    if second.mechanism == DISCRETE_GAUSSIAN:
        total, words = sum(each**2 for each in moved), f"in squared L2, under noise of σ² = {_short(second.scale)}"
        return total / (2 * second.scale), total, f"the exact numbers differ by {{}} {words}"
    total = sum(map(abs, moved))
    return total / second.scale, total, f"the exact numbers differ by {{}} in L1, under noise of scale {_short(second.scale)}"


def _loss_of_choice(first: Chosen, second: Chosen) -> tuple[Fraction, int, str]:
    total = 0
    for ours, theirs, may in zip(first.scores.tolist(), second.scores.tolist(), second.allowed.tolist(), strict=True):
        moved = [a - b for a, b, allowed in zip(ours, theirs, may, strict=True) if allowed]
        total += max(moved) - min(moved)
    return total * second.rate, total, f"the scores of the candidates move apart by {{}} steps, at a rate of {_short(second.rate)}"


def _short(number: Fraction) -> str:
    return str(number) if number.denominator < 1000 else f"{float(number):.6g}"
