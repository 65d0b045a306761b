"""What a release claims about privacy, in words and exact numbers that travel with it.

A certificate follows from its *parts*, the tables that were counted: one for a fit, one more for each batch that was added
and each owner that was merged. `certificate_of` is the only place where their losses are put together (PROOF.md, P3 and P4).

What is protected is one row; or one person, where the schema names the column of persons (PROOF.md, U1 and U2) or where several
tables were counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal

import msgspec

from hedgerow import __version__, formatting
from hedgerow.accounting.events import LOCAL_SENSITIVITY, Event
from hedgerow.accounting.loss import exact_sum, text_of_fraction
from hedgerow.accounting.zcdp import rho_for, zcdp_cost
from hedgerow.release.parts import (
    EPSILON_DELTA_DP,
    EPSILON_DP,
    NEARLY_ONE_DRAW,
    NEIGHBOURS,
    NEIGHBOURS_OF_PARTS,
    NOT_PROVEN,
    ONE_ROW_EACH,
    TEST_COINS,
    UNIT,
    UNIT_OF_PARTS,
    UNREVIEWED,
    EventRecord,
    Part,
    TableName,
    Together,
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
        return formatting.loss(Fraction(self.epsilon), Fraction(self.delta or 0))

    @property
    def events(self) -> list[EventRecord]:
        """Every charged look at rows, of all parts."""
        return [event for part in self.parts for event in part.events]

    @property
    def spent(self) -> Fraction:
        """The ε of all charged looks of all parts."""
        return exact_sum(part.spent for part in self.parts)

    @property
    def sampler(self) -> str:
        """What drew the noise."""
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

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        """The sentence, and how much more there is: of a Hedgerow forest the charged looks alone are thousands of lines."""
        return f"Certificate({self.sentence()}; parts: {len(self.parts)}, events: {len(self.events)})"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from hedgerow.plots.notebook import certificate_html  # see pyproject.toml

        return certificate_html(self)


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
    together: Together | None = None,
    source: str = "",
) -> Part:
    """What one private run on one table claims. `requested`, and `delta`, are the bound for every way the run could have gone.

    `id` names the table where `name` declares nothing. A run that ended early charged less; its events say what, and the rest went
    back to the budget. `person` and `rows_per_person` are the schema's (`schema.person`, `schema.k`); `assumed` and `source` (its
    `origin`) are the engine's.
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
        together=msgspec.UNSET if together is None else together,
        source=source or msgspec.UNSET,
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
    for part in parts:
        if isinstance(part.together, Together):
            found[part.together.assumption] = None
            if part.exact_delta:
                found[NEARLY_ONE_DRAW] = None
            found[f"each of these owners states that no person has rows in two of their tables: {', '.join(part.owners)}"] = None
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


def anonymity_certificate(
    requirement: dict[str, str], words: str, hits: bool = False, at_values: bool = False, group: str = "path"
) -> Certificate:
    """For a pruned tree with exact counts: what its paths satisfy, and never an ε.

    hits:      by hit and miss alone, and telling no more
    at_values: its thresholds were found between the values of rows
    group:     "path" of a tree, or "rule" of a rule set, whose misses stand nowhere
    """
    assumptions = [
        "the schema holds public facts only: domains, bounds and classes were not read from the private rows",
        ONE_ROW_EACH,
        "nobody publishes anything else about the same persons",
    ]
    if hits:
        where = "its misses stand evenly in the other classes" if group == "path" else "not the classes of its misses"
        assumptions.append(f"only hit and miss of each {group} are told: {where}")
    if at_values:
        assumptions.append("thresholds lie between values of two persons, and tell that much of them: no requirement on paths bounds that")
    return Certificate(
        "anonymity",
        None,
        f"every {group} satisfies {words}{' by its hit and miss' if hits else ''}",
        ANONYMITY_RELATION,
        f"one {group}",
        assumptions,
        [],
        requirement | ({"by": "hits"} if hits else {}),
    )
