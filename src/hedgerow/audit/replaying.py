"""Transcript replay: train on a table, train on a neighbour with the same answers, and compare everything. No statistics: one run tells.

If ε holds by the proofs, then given the answers so far the next query, its price and its noise are the same on both tables; the exact
numbers differ by no more than was charged for; and what comes out is a function of the answers. Each is checked, exactly.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from io import StringIO
from typing import Any

from hedgerow.accounting.events import DISCRETE_GAUSSIAN
from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.accounting.zcdp import rho_for, zcdp_cost
from hedgerow.audit.answers import ANSWERS, Answers
from hedgerow.audit.attack import Train
from hedgerow.audit.content import parts_of
from hedgerow.audit.listening import Listening
from hedgerow.audit.neighbours import Pair, Table
from hedgerow.audit.transcript import Charged, Stopped, Transcript
from hedgerow.errors import AuditError, ExactScoreWarning, NoBudgetWarning, PlanError
from hedgerow.release.certificate import Certificate
from hedgerow.release.parts import EventRecord


@dataclass(frozen=True)
class Compared:
    """What was found about one pair of tables.

    runs:    how many times one table was replayed with the answers of the other: in both directions, with all kinds of answers
    queries: how many queries were compared in them
    shares:  by query, the largest part of its charge that a query used up: 1 is a bound that is attained, more is a violation
    wrong:   what is violated, in words; "" if nothing is
    """

    pair: str
    why: str
    runs: int
    queries: int
    shares: dict[str, float]
    wrong: str = ""

    @property
    def share(self) -> float:
        return max(self.shares.values(), default=0.0)


@dataclass(frozen=True)
class Replay:
    """All that was compared of one training function."""

    what: str
    findings: tuple[Compared, ...]

    @property
    def violated(self) -> bool:
        """Whether a query lost more between the two tables than was charged."""
        return any(finding.wrong for finding in self.findings)


def replay(
    train: Train,
    pairs: Sequence[Pair],
    *,
    epsilon: Any = None,
    what: str = "a training function",
    answers: Iterable[str] = tuple(ANSWERS),
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Replay:
    """Replay a training function on every pair of neighbouring tables, in both directions.

    train:   a table in, its output out; it looks at rows through `PrivateTable`, as all estimators here do, in the thread it is called in
    epsilon: what all its queries may cost together; by default what it reserves
    answers: which answers the first run of each pair is given (`audit/answers.py`)
    """
    unknown = [name for name in answers if name not in ANSWERS]
    if not pairs or unknown:
        raise PlanError(f"replay: got {len(pairs)} pairs and the answers {unknown or list(answers)}; expected a pair, and {list(ANSWERS)}.")
    most = None if epsilon is None else exact_epsilon(epsilon)
    found: list[Compared] = []
    with Listening() as ears:
        for i, pair in enumerate(pairs):
            found.append(_compared(ears, train, pair, [ANSWERS[name] for name in answers], most, seed + i))
            if progress:
                progress((i + 1) / len(pairs))
    if not any(each.queries or each.wrong for each in found):
        raise AuditError(
            "replay: no query was seen; expected a function that looks at rows through PrivateTable. Next: `audit` attacks any function."
        )
    return Replay(what, tuple(found))


def _compared(ears: Listening, train: Train, pair: Pair, kinds: Sequence[Answers], most: Fraction | None, seed: int) -> Compared:
    runs, queries, shares = 0, 0, dict[str, Fraction]()
    for number, kind in enumerate(kinds):
        own = len(ANSWERS) * seed + number  # of person keys and seeded noise: another one for each kind of answers
        for table, neighbour, more in ((pair.without, pair.with_row, True), (pair.with_row, pair.without, False)):
            first = run(ears, train, table, Transcript(kind, own), most)
            second = first if first.wrong else run(ears, train, neighbour, Transcript(kind, own, first), most)
            runs, queries = runs + 1, queries + second.queries
            shares |= {query: max(share, shares.get(query, share)) for query, share in second.shares.items()}
            if not second.wrong:
                continue
            if second is not first and (again := run(ears, train, table, Transcript(kind, own, first), most)).wrong:
                raise AuditError(
                    f"replay: the function is not the same twice on one table with the same answers ({again.wrong}). It draws randomness "
                    "that replay does not know of. Next: seed it (random_state=0), or use `audit`, which needs no replaying."
                )
            words = f"{second.wrong} (answers: {kind.name}, of the run on the {'smaller' if more else 'larger'} table)"
            return Compared(pair.name, pair.why, runs, queries, {query: float(share) for query, share in shares.items()}, words)
    return Compared(pair.name, pair.why, runs, queries, {query: float(share) for query, share in shares.items()})


def run(ears: Listening, train: Train, table: Table, transcript: Transcript, most: Fraction | None = None) -> Transcript:
    """One run: an error, a warning and what is printed are outputs, too."""
    printed, output = StringIO(), None
    with ears.to(transcript), warnings.catch_warnings(record=True) as told, redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            output = train(table)
        except Stopped:
            return transcript
        except Exception as error:
            output = error
    if transcript.loose:
        raise AuditError(
            f"replay: {transcript.loose} was drawn for no query of a PrivateTable, so that what it was added to is not known. Next: "
            "`audit` attacks any function."
        )
    once = (NoBudgetWarning, ExactScoreWarning)  # said by the first fit or score of a process, whatever the rows are
    said = [(each.category.__name__, str(each.message)) for each in told if not issubclass(each.category, once)]
    transcript.finish(parts_of({"output": output, "warnings": said, "printed": printed.getvalue()}))
    transcript.wrong = transcript.wrong or accounts_wrong(transcript, output, most)
    return transcript


def accounts_wrong(transcript: Transcript, output: Any, most: Fraction | None) -> str:
    """What was charged, added up once more: within each reservation, within ε, and all of it in the certificate. "" if it is."""
    charged = [step for step in transcript.steps if isinstance(step, Charged)]
    total = Fraction(0)
    for number, account in enumerate(transcript.accounts):
        events = [step.event for step in charged if step.account == number]
        pure = sum((event.epsilon for event in events), Fraction(0))
        fits = pure <= account.epsilon and all(event.mechanism != DISCRETE_GAUSSIAN for event in events)
        if account.delta and not fits:
            fits = sum(map(zcdp_cost, events), Fraction(0)) <= rho_for(account.epsilon, account.delta)
        if not fits:
            return f"{account.what}: its queries cost more than the {text_of_fraction(account.epsilon)} that was reserved"
        total += account.epsilon if account.delta else pure
    if most is not None and total > most:
        return f"all queries together cost ε = {text_of_fraction(total)}, and {text_of_fraction(most)} is claimed"
    certificates = list(_certificates(output))
    if certificates:
        stated = Counter(record for record in _records(certificates))
        absent = Counter(_text(EventRecord.of(step.event)) for step in charged) - stated
        if absent:
            return f"{sum(absent.values())} of {len(charged)} charged queries are not in the certificate, such as {next(iter(absent))}"
    return ""


def _records(certificates: Iterable[Certificate]) -> Iterable[str]:
    parts = {(part.owner, part.id): part for certificate in certificates for part in certificate.parts}  # two releases may share a table
    return (_text(record) for part in parts.values() for record in part.events)


def _text(record: EventRecord) -> str:
    return f"{record.query} ({record.mechanism}, ε = {record.epsilon}, scale {record.scale}, ρ = {record.rho})"


def _certificates(output: Any) -> Iterable[Certificate]:
    """Those of releases, fitted estimators and scores; of several, all."""
    if isinstance(output, tuple | list):
        for each in output:
            yield from _certificates(each)
        return
    holder = getattr(output, "release_", output)
    certificate = getattr(holder, "certificate", None)
    if isinstance(certificate, Certificate):
        yield certificate
