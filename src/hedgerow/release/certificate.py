"""What a release claims about privacy, in words and exact numbers that travel with it.

A certificate follows from its *parts*, the tables that were counted: one for a fit, one more for each batch that was added
and each owner that was merged. `certificate_of` is the only place where their losses are put together (PROOF.md, P3 and P4).

What is protected is one row; or one person, where the schema names the column of persons (PROOF.md, U1 and U2) or where several
tables were counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import msgspec

from hedgerow import __version__
from hedgerow.accounting.events import LOCAL_SENSITIVITY, Event
from hedgerow.accounting.loss import exact_sum, text_of_delta, text_of_fraction
from hedgerow.accounting.noise import Noise, made_noise
from hedgerow.accounting.zcdp import rho_for, rho_of_event, zcdp_cost
from hedgerow.errors import PlanError

NEIGHBOURS = "add or remove one row"
UNIT = "one row"
NEIGHBOURS_OF_PARTS = "add or remove one person, with at most one row in each counted table"
UNIT_OF_PARTS = "one person"
ONE_ROW_EACH = "each person has at most one row in the table"
UNREVIEWED = "domains were read from private data"
NOT_PROVEN = "splits were chosen with local sensitivity, for which the stated ε is not proven"
TEST_COINS = "noise came from seeded test coins that anyone can replay"
MAX_NAME = 200  # characters
EPSILON_DP, EPSILON_DELTA_DP = "epsilon-DP", "epsilon-delta-DP"
COUNTING = 1  # how a row is read and counted: parts that were counted in different ways cannot be added


class EventRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A charged event; see `accounting/events.py` for the meaning of each field."""

    query: str = msgspec.field(name="verb")
    mechanism: str
    epsilon: str
    queries: int
    sensitivity: str
    scale: str
    rho: str | msgspec.UnsetType = msgspec.UNSET  # of Gaussian noise alone: elsewhere the file has no such field

    @property
    def noise(self) -> Noise:
        """The noise on each number that it answered."""
        return made_noise(self.mechanism, Fraction(self.scale))

    @property
    def zcdp_cost(self) -> Fraction:
        """Its loss in concentrated privacy."""
        rho = Fraction(0) if isinstance(self.rho, msgspec.UnsetType) else Fraction(self.rho)
        return rho_of_event(self.mechanism, Fraction(self.epsilon), rho)

    @classmethod
    def of(cls, event: Event) -> EventRecord:
        return cls(
            event.query,
            event.mechanism,
            text_of_fraction(event.epsilon),
            event.queries,
            text_of_fraction(event.sensitivity),
            text_of_fraction(event.scale),
            text_of_fraction(event.rho) if event.rho else msgspec.UNSET,
        )


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table that was counted: an owner's, or a batch of rows that came later.

    id:          random, or declared by the owner; never made from the rows. With `owner` it names the table
    owner:       a declared name, "" if none was given
    epsilon:     what its rows are charged at most
    events:      every charged look at its rows; their ε add up to `epsilon`, or to less where a run ended early. With `delta`, their
                 losses in concentrated privacy add up to at most what (ε, δ) is worth
    sampler:     what drew the noise
    assumptions: what its owner states and nobody checked
    problem:     why no ε can be claimed for it; "" where nothing is wrong
    disjoint:    its owner states that a person with rows in this table has none in another table of the plan or forest, and that which
                 table a row is in depends on that row alone
    group:       the same is stated by whoever merged, of all tables with the same group; "" where nobody did
    counted:     False for a table whose own counts are not in the release: it stands behind the trees, by what shaped them (a noisy n̂, a
                 tuning) and by its counts, which whoever took these trees may have looked at
    released:    other numbers that were paid for (the noisy n̂)
    ensemble:    which ensemble of the forest it was counted in; more than one only after a merge of columns
    signed_by:   the public keys that whoever merged saw hold on its file: a record, not a proof
    rows_per_person: of a table with a column of persons, how many rows of each were counted at most. Sensitivities are so many times
                 those of one row, and `epsilon` is what a person pays
    chosen_beforehand: of a table that is not counted here, whoever counted in these trees states that taking them did not depend on its
                 counts. Then `events` and `epsilon` are those of the looks before its counts: none, or its number of rows
    """

    id: str
    owner: str
    epsilon: str
    events: list[EventRecord]
    sampler: str
    assumptions: list[str]
    problem: str = ""
    disjoint: bool = False
    group: str = ""
    counted: bool = True
    released: dict[str, int] = {}
    ensemble: int = 0
    signed_by: list[str] = []
    made_by: str = ""
    counting: int = COUNTING
    delta: str | msgspec.UnsetType = msgspec.UNSET  # where it is 0 the file has no such field
    rows_per_person: int | msgspec.UnsetType = msgspec.UNSET  # where the schema names no column of persons the file has no such field
    chosen_beforehand: bool | msgspec.UnsetType = msgspec.UNSET  # True where it is stated; elsewhere the file has no such field

    @property
    def of_persons(self) -> bool:
        """Whether a column told whose row each is, so that its rows were limited and its ε is that of a person."""
        return not isinstance(self.rows_per_person, msgspec.UnsetType)

    @property
    def k(self) -> int:
        """How many rows of one person were counted at most; where no column tells persons apart, one is assumed."""
        return 1 if isinstance(self.rows_per_person, msgspec.UnsetType) else self.rows_per_person

    @property
    def exact_delta(self) -> Fraction:
        """δ as a number, 0 where there is none."""
        return Fraction(0) if isinstance(self.delta, msgspec.UnsetType) else Fraction(self.delta)

    @property
    def worth(self) -> Fraction:
        """What its (ε, δ) is worth in concentrated privacy: what its events may cost; 0 where δ is 0."""
        return rho_for(Fraction(self.epsilon), self.exact_delta) if self.exact_delta else Fraction(0)

    @property
    def all_pure(self) -> bool:
        """Whether its events have pure losses that add up to at most its ε."""
        pure = all(isinstance(event.rho, msgspec.UnsetType) for event in self.events)
        return pure and exact_sum(Fraction(event.epsilon) for event in self.events) <= Fraction(self.epsilon)

    @property
    def zcdp_cost(self) -> Fraction:
        """The losses of its events in concentrated privacy together."""
        return exact_sum(event.zcdp_cost for event in self.events)

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.owner} ({self.id})" if self.owner else self.id

    @property
    def statement(self) -> str:
        """What is said about persons who might be in another table, too."""
        if not self.counted:
            before = "; stated: they were taken without regard to its counts" if self.stated_beforehand else ""
            return f"shaped the trees only{'; without its counts, which nobody stated' if self.before_counts else before}"
        said = [who for who, says in (("by its owner", self.disjoint), ("at a merge", bool(self.group))) if says]
        return f"stated {' and '.join(said)}" if said else "not stated"

    @property
    def stated_beforehand(self) -> bool:
        """Whether it is stated that these trees were taken without regard to its counts."""
        return self.chosen_beforehand is True

    @property
    def before_counts(self) -> bool:
        """Whether its counts are left out without anybody's word, as in the first releases. (Of one that was tuned it cannot be told.)"""
        return not self.counted and not self.stated_beforehand and all(event.query != "leaf_counts" for event in self.events)

    @property
    def key(self) -> tuple[str, str]:
        return (self.owner, self.id)

    @property
    def spent(self) -> Fraction:
        """The ε that its events add up to; with δ the whole, since what was not used cannot be given back (PROOF.md, Z1)."""
        if self.exact_delta:
            return Fraction(self.epsilon)
        return exact_sum(Fraction(event.epsilon) for event in self.events)


@dataclass(frozen=True)
class TableName:
    """How a certificate names a counted table. Where no batch is declared its name is random: never one made from its rows."""

    batch: str | None = None
    owner: str = ""
    disjoint: bool = False

    def __post_init__(self) -> None:
        for what, text, none in (("batch", self.batch, None), ("owner", self.owner, "")):
            if isinstance(text, type(none)) and text == none:
                continue
            if not isinstance(text, str) or not 0 < len(text) <= MAX_NAME or not text.isprintable() or not text.strip():
                raise PlanError(f"{what}: expected a name of 1 to {MAX_NAME} printable characters, got {str(text)[:40]!r}.")
        if not isinstance(self.disjoint, bool):
            raise PlanError(f"disjoint: got {self.disjoint!r}; expected True (you state it) or False.")

    def check_new(self, parts: Iterable[Part]) -> None:
        """Refuse a batch that is counted already, before anything is spent on it."""
        if self.batch is not None and any(part.key == (self.owner, self.batch) for part in parts):
            raise PlanError(
                f"batch: {self.batch!r}{f' of {self.owner!r}' if self.owner else ''} is in the forest already. The same rows cannot be "
                "counted twice; give a new batch a name of its own, or none."
            )


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The guarantee of a release.

    guarantee:   "epsilon-DP"; "epsilon-delta-DP"; "anonymity" (of the tree's paths: not differential privacy); or "none" with the
                 reason why
    epsilon:     the exact loss, as text ("0.3", "1/3"): what might have been charged at most; None where no ε is claimed
    neighbours:  the relation under which it holds
    unit:        what one neighbour differs in
    assumptions: what the owners state and nobody checked
    parts:       the tables that were counted, each with its own ε
    requirement: of an anonymity release, what every path satisfies: k, c, l, alpha as text
    delta:       the exact δ, as text, where the guarantee is "epsilon-delta-DP"
    """

    guarantee: Literal["epsilon-DP", "epsilon-delta-DP", "anonymity", "none"]
    epsilon: str | None
    reason: str
    neighbours: str
    unit: str
    assumptions: list[str]
    parts: list[Part]
    requirement: dict[str, str] | None = None
    delta: str | None = None

    @property
    def private(self) -> bool:
        """Whether it claims differential privacy."""
        return self.guarantee in (EPSILON_DP, EPSILON_DELTA_DP)

    @property
    def of_persons(self) -> bool:
        """Whether every counted table has a column that tells whose row each is."""
        return bool(self.parts) and all(part.of_persons for part in self.parts)

    @property
    def loss(self) -> str:
        """What it claims to cost at most, in words: "ε = 1", "(ε = 1, δ = 1e-06)", "not claimed"."""
        if self.epsilon is None:
            return "not claimed"
        return f"ε = {self.epsilon}" if self.delta is None else f"(ε = {self.epsilon}, δ = {text_of_delta(Fraction(self.delta))})"

    @property
    def events(self) -> list[EventRecord]:
        """Every charged look at rows, of all parts."""
        return [event for part in self.parts for event in part.events]

    @property
    def spent(self) -> Fraction:
        return exact_sum(part.spent for part in self.parts)

    @property
    def sampler(self) -> str:
        return "; ".join(dict.fromkeys(part.sampler for part in self.parts)) or "none"

    @property
    def by_hits(self) -> bool:
        """Of an anonymity release: only hit and miss of each path are real, the classes of the misses are not."""
        return self.requirement is not None and self.requirement.get("by") == "hits"

    def sentence(self) -> str:
        """The guarantee in one line."""
        if self.guarantee == "none":
            return f"no privacy guarantee: {self.reason}"
        if self.guarantee == "anonymity":
            return f"anonymity, NOT differential privacy: {self.reason}"
        return f"{self.loss} differential privacy, neighbours: {self.neighbours}"


def part_of(
    events: Sequence[Event],
    *,
    requested: Fraction,
    delta: Fraction = Fraction(0),
    sampler: str,
    secret: bool,
    unreviewed: Sequence[str] = (),
    public_rows: str | None = None,
    no_guarantee: str | None = None,
    person: str | None = None,
    rows_per_person: int = 1,
    assumed: str = "",
    id: str,
    name: TableName | None = None,
    released: Mapping[str, int] | None = None,
) -> Part:
    """What one private run on one table claims. `requested`, and `delta`, are the bound for every way the run could have gone.

    `id` names the table where `name` declares nothing. A run that ended early charged less; its events say what, and the rest went
    back to the budget. `person` and `rows_per_person` are the schema's (`schema.person`, `schema.k`); `assumed` is the engine's.
    """
    pure = not any(event.rho for event in events) and sum((event.epsilon for event in events), Fraction(0)) <= requested
    assert pure or (delta and sum(map(zcdp_cost, events), Fraction(0)) <= rho_for(requested, delta))
    name = name or TableName()
    problems = [] if no_guarantee is None else [no_guarantee]
    if unreviewed:
        problems.append(f"{UNREVIEWED} and not reviewed: {', '.join(unreviewed)}")
    if not secret:
        problems.append(TEST_COINS)
    if any(event.mechanism == LOCAL_SENSITIVITY for event in events):
        problems.append(NOT_PROVEN)
    assumptions = ["the schema holds public facts only: domains, bounds and classes were not read from the private rows"]
    if unreviewed:
        assumptions = []
    if public_rows is not None:
        assumptions.append(public_rows)
    assumptions += [ONE_ROW_EACH] if person is None else persons_assumed(person, rows_per_person)
    if assumed:
        assumptions.append(assumed)
    return Part(
        id=id if name.batch is None else name.batch,
        owner=name.owner,
        epsilon=text_of_fraction(requested),
        events=[EventRecord.of(event) for event in events],
        sampler=sampler,
        assumptions=assumptions,
        problem="; ".join(problems),
        disjoint=name.disjoint,
        released=dict(released or {}),
        made_by=f"hedgerow {__version__}",
        delta=text_of_fraction(delta) if delta else msgspec.UNSET,
        rows_per_person=msgspec.UNSET if person is None else rows_per_person,
    )


def persons_assumed(person: str, rows_per_person: int) -> list[str]:
    """What a unit of one person rests on."""
    limit = "one row" if rows_per_person == 1 else f"{rows_per_person} rows"
    return [
        f"a person is one value of the column {person!r}, of which at most {limit} were counted: whoever has two values there counts as "
        "two persons, and all rows without a value are one person's"
    ]


def declared_rows(rows: int | None) -> str | None:
    """The assumption behind a number of rows that the schema declares."""
    return None if rows is None else f"the number of rows, {rows}, is public (declared by the owner, not checked)"


def planned_rows(rows: int | None) -> str | None:
    """The same for a plan that is shared: its number is nobody's own."""
    return None if rows is None else f"the number of rows that was planned for, {rows}, is public (nobody compared it with a table)"


# ---------------------------------------------------------------- putting losses together


def shaping_part(part: Part, chosen_beforehand: bool = False) -> Part:
    """What a table has given to trees that others are counted in: its whole loss, as whoever takes the trees may have seen its counts (P3).

    chosen_beforehand: whoever takes them states that this did not depend on the counts. Then the table is kept with what it lost before
    them: nothing, or what its number of rows cost. Only if the counts came last (what is chosen after them, as the reading of a Hedgerow
    forest, follows from them), and only if the looks before them are the same whichever way the run went, so that their sum was set
    beforehand. A table that was not counted in these trees stays as it is: how they were taken before is not for a later one to state.
    """
    if not part.counted:
        return part
    shaped = msgspec.structs.replace(part, counted=False, group="", signed_by=[])
    names = [event.query for event in part.events]
    if not chosen_beforehand or names not in (["leaf_counts"], ["rows", "leaf_counts"]) or (part.exact_delta and len(names) > 1):
        return shaped
    before = part.events[:-1]
    spent = text_of_fraction(exact_sum(Fraction(event.epsilon) for event in before))
    return msgspec.structs.replace(shaped, events=before, epsilon=spent, delta=msgspec.UNSET, chosen_beforehand=True)


Loss = tuple[Fraction, Fraction]  # ε and δ


def loss_of(parts: Iterable[Part]) -> Fraction:
    """The ε of `losses_of`: the whole loss where no part has a δ."""
    return losses_of(parts)[0]


def losses_of(parts: Iterable[Part]) -> Loss:
    """The loss (ε, δ) of one person over all parts (P3, P4).

    Ensembles were counted on different columns of the same persons: their losses add. Within one, the tables are divided into
    sets in which no person is in two tables, by what is stated; of a set the largest ε and the largest δ count, and the sets add up. Two
    such divisions are tried, the owners' statements first or the mergers' first; both bound the loss, so the smaller one holds (by ε; of
    two with the same ε, by δ).
    """
    losses = [min(_divided(ensemble, owners_first) for owners_first in (True, False)) for ensemble in by_ensemble(parts).values()]
    return exact_sum(epsilon for epsilon, _ in losses), exact_sum(delta for _, delta in losses)


def by_ensemble(parts: Iterable[Part]) -> dict[int, list[Part]]:
    found: dict[int, list[Part]] = {}
    for part in parts:
        found.setdefault(part.ensemble, []).append(part)
    return found


def _divided(parts: Sequence[Part], owners_first: bool) -> Loss:
    largest: dict[object, Loss] = {}
    for place, part in enumerate(parts):
        if part.disjoint and (owners_first or not part.group):
            which: object = "owners"
        else:
            which = ("group", part.group) if part.group else place
        epsilon, delta = largest.get(which, (Fraction(0), Fraction(0)))
        largest[which] = max(epsilon, Fraction(part.epsilon)), max(delta, part.exact_delta)
    return exact_sum(epsilon for epsilon, _ in largest.values()), exact_sum(delta for _, delta in largest.values())


def all_disjoint(parts: Sequence[Part]) -> bool:
    """Whether it is stated that no person is in two of these tables."""
    return len(parts) < 2 or all(part.disjoint for part in parts) or (bool(parts[0].group) and len({part.group for part in parts}) == 1)


def certificate_of(parts: Iterable[Part]) -> Certificate:
    """The certificate that follows from the parts, whatever their order. Its texts belong to the file format: a file is compared."""
    parts = sorted(parts, key=lambda part: (part.ensemble, part.owner, part.id))
    several = len(parts) > 1
    problems = [f"{part.name}: {part.problem}" if several else part.problem for part in parts if part.problem]
    epsilon, delta = (Fraction(0), Fraction(0)) if problems else losses_of(parts)
    return Certificate(
        guarantee="none" if problems else "epsilon-delta-DP" if delta else "epsilon-DP",
        epsilon=None if problems else text_of_fraction(epsilon),
        reason="; ".join(problems) if problems else _reason(parts),
        neighbours=neighbours_of(parts),
        unit=UNIT_OF_PARTS if several or any(part.of_persons for part in parts) else UNIT,
        assumptions=_assumptions(parts),
        parts=parts,
        delta=text_of_fraction(delta) if delta else None,
    )


def neighbours_of(parts: Sequence[Part]) -> str:
    """What may differ between two inputs for the claim to hold: one row, or one person with all of their rows."""
    several = len(parts) > 1
    if not any(part.of_persons for part in parts):
        return NEIGHBOURS_OF_PARTS if several else NEIGHBOURS
    least, most = min(part.k for part in parts), max(part.k for part in parts)
    if least != most:
        return f"add or remove one person, with at most {least} to {most} rows counted in each counted table, as the table states"
    rows = "one row" if most == 1 else f"{most} rows"
    return f"add or remove one person, with at most {rows} counted{' in each counted table' if several else ''}"


def _reason(parts: Sequence[Part]) -> str:
    said = ["every look at the rows was noised and charged before it was made"]
    worth = {part.worth for part in parts if part.exact_delta and not part.all_pure}
    if worth:
        which = "its looks were" if len(parts) == 1 else "the looks at each table with δ were"
        most = f"ρ = {text_of_fraction(max(worth))}{'' if len(worth) == 1 else ' at most'}"
        said.append(f"{which} composed by zero-concentrated differential privacy to {most} and converted to (ε, δ)")
    also = ", and the δ," if any(part.exact_delta for part in parts) else ""
    ensembles = list(by_ensemble(parts).values())
    if any(len(ensemble) > 1 for ensemble in ensembles):
        if all(all_disjoint(ensemble) for ensemble in ensembles):
            said.append(f"persons are stated to be disjoint: the largest ε{also} of the tables counts")
        elif any(part.disjoint or part.group for part in parts):
            said.append("only of some tables it is stated that persons are disjoint: the others add up")
        else:
            said.append(f"nobody states that persons are disjoint: the ε{also} of the tables add up")
    if len(ensembles) > 1:
        said.append(f"the owners hold different columns of the same persons: the ε{also} of their ensembles add up")
    return "; ".join(said)


def _assumptions(parts: Sequence[Part]) -> list[str]:
    found = dict.fromkeys(text for part in parts for text in part.assumptions)
    if len(parts) > 1:
        stated: dict[str, list[str]] = {}
        for part in parts:
            if part.disjoint:
                stated.setdefault("each owner", []).append(part.name)
            if part.group:
                stated.setdefault(f"whoever merged (statement {part.group})", []).append(part.name)
        for who, names in sorted(stated.items()):
            if len(names) > 1:
                found[f"{who} states that no person has rows in two of these tables: {', '.join(names)}"] = None
        beforehand = [part.name for part in parts if part.stated_beforehand]
        if beforehand:
            found[f"whoever counted in these trees states that taking them did not depend on the counts of: {', '.join(beforehand)}"] = None
        found["which table a row is in depends on that row alone: one person more or less moves nobody else's row"] = None
    return list(found)


def no_certificate(reason: str) -> Certificate:
    """For non-private baselines: exact counts, nothing claimed."""
    return Certificate("none", None, reason, NEIGHBOURS, UNIT, [], [])


ANONYMITY_RELATION = "none: anonymity is a property of the published groups"


def anonymity_certificate(requirement: dict[str, str], words: str, hits: bool = False) -> Certificate:
    """For a pruned tree with exact counts: what its paths satisfy, and never an ε. `hits`: by hit and miss alone, and telling no more."""
    assumptions = [
        "the schema holds public facts only: domains, bounds and classes were not read from the private rows",
        ONE_ROW_EACH,
        "nobody publishes anything else about the same persons",
    ]
    if hits:
        assumptions.append("only hit and miss of each path are told: its misses stand evenly in the other classes")
    return Certificate(
        "anonymity",
        None,
        f"every path satisfies {words}{' by its hit and miss' if hits else ''}",
        ANONYMITY_RELATION,
        "one path",
        assumptions,
        [],
        requirement | ({"by": "hits"} if hits else {}),
    )
