"""The losses of several tables put together: properties that hold for any parts, and what the certificate says about them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.accounting.charges import counting_event
from hedgerow.accounting.loss import plain_fraction, text_of_fraction
from hedgerow.errors import PlanError
from hedgerow.release.certificate import all_disjoint, certificate_of, loss_of, shaping_part
from hedgerow.release.parts import NEIGHBOURS, NEIGHBOURS_OF_PARTS, UNIT, UNIT_OF_PARTS, EventRecord, Part, TableName

epsilons = st.fractions(Fraction(1, 1000), 20, max_denominator=1000)
booleans = st.booleans()
groups = st.sampled_from(["", "", "g", "h"])
nobody = st.just("")
no = st.just(False)
no_problem = st.just("")


def part(epsilon: Fraction, **fields: Any) -> Part:
    """A table that was counted in one tree with all of ε."""
    event = EventRecord("leaf_counts", "discrete Laplace", text_of_fraction(epsilon), 1, "1", text_of_fraction(1 / epsilon))
    plain: dict[str, Any] = {"id": "a", "owner": "", "sampler": "a sampler", "assumptions": ["a", "b"]}
    return Part(**{**plain, "epsilon": text_of_fraction(epsilon), "events": [event], **fields})


@st.composite
def tables(
    draw: Any,
    least: int = 1,
    most: int = 6,
    disjoint: Any = booleans,
    group: Any = groups,
    ensembles: int = 3,
    problem: Any = no_problem,
) -> list[Part]:
    """Tables with any statements: of their owners (`disjoint`) and of whoever merged them (`group`)."""
    names = draw(st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("abcdefgh")), min_size=least, max_size=most, unique=True))
    return [
        part(
            draw(epsilons),
            id=id_,
            owner=owner,
            disjoint=draw(disjoint),
            group=draw(group),
            counted=draw(booleans),
            ensemble=draw(st.integers(0, ensembles - 1)),
            problem=draw(problem),
        )
        for owner, id_ in names
    ]


def epsilon_of(each: Part) -> Fraction:
    return Fraction(each.epsilon)


def in_ensembles(parts: list[Part]) -> list[list[Part]]:
    return [[each for each in parts if each.ensemble == number] for number in sorted({each.ensemble for each in parts})]


def apart(a: Part, b: Part) -> bool:
    """Whether it is stated that no person is in both: by both owners, or by one merger of both."""
    return (a.disjoint and b.disjoint) or (a.group != "" and a.group == b.group)


def worst_person(parts: list[Part]) -> Fraction:
    """By trying them all: in each ensemble a person is in any tables of which no two are stated to be disjoint."""
    worst = Fraction(0)
    for mine in in_ensembles(parts):
        worst += max(
            sum(map(epsilon_of, chosen), Fraction(0))
            for size in range(1, len(mine) + 1)
            for chosen in combinations(mine, size)
            if not any(apart(a, b) for a, b in combinations(chosen, 2))
        )
    return worst


# ---------------------------------------------------------------- the loss


@pytest.mark.slow
@given(tables())
def test_no_person_loses_more(parts: list[Part]) -> None:
    assert loss_of(parts) >= worst_person(parts)


@pytest.mark.slow
@given(tables(group=nobody) | tables(disjoint=no))
def test_the_loss_is_that_of_the_worst_person(parts: list[Part]) -> None:
    """Exactly, where the statements are all of one kind."""
    assert loss_of(parts) == worst_person(parts)


@pytest.mark.slow
@given(tables(), st.randoms(use_true_random=False))
def test_order_does_not_matter(parts: list[Part], random: Any) -> None:
    shuffled = random.sample(parts, len(parts))
    assert loss_of(shuffled) == loss_of(parts)
    assert certificate_of(shuffled) == certificate_of(parts)


@pytest.mark.slow
@given(tables(least=2), st.data())
def test_grouping_does_not_matter(parts: list[Part], data: Any) -> None:
    """A merge of merges says what one merge of all would say."""
    cut = data.draw(st.integers(1, len(parts) - 1))
    first, second = certificate_of(parts[:cut]), certificate_of(parts[cut:])
    assert certificate_of([*second.parts, *first.parts]) == certificate_of(parts)


@given(tables())
def test_the_loss_lies_between_the_largest_and_the_sum(parts: list[Part]) -> None:
    assert max(map(epsilon_of, parts)) <= loss_of(parts) <= sum(map(epsilon_of, parts))


@pytest.mark.slow
@given(tables(ensembles=1, disjoint=st.just(True)) | tables(ensembles=1, group=st.just("g")))
def test_the_largest_counts_where_all_are_stated_to_be_disjoint(parts: list[Part]) -> None:
    """By all of their owners, whatever a merger says of some; or by one merger of all, whatever some owners say."""
    assert all_disjoint(parts)
    assert loss_of(parts) == max(map(epsilon_of, parts))


@pytest.mark.slow
@given(tables(ensembles=1, disjoint=st.just(True), group=nobody) | tables(ensembles=1, disjoint=no, group=st.just("g")), st.data())
def test_a_table_of_which_nothing_is_stated_is_added(parts: list[Part], data: Any) -> None:
    place = data.draw(st.integers(0, len(parts) - 1))
    parts[place] = msgspec.structs.replace(parts[place], disjoint=False, group="")
    others = [epsilon_of(each) for number, each in enumerate(parts) if number != place]
    assert loss_of(parts) == epsilon_of(parts[place]) + max(others, default=Fraction(0))
    assert all_disjoint(parts) == (len(parts) == 1)


@pytest.mark.slow
@given(tables(disjoint=no, group=nobody))
def test_all_add_up_where_none_is_disjoint(parts: list[Part]) -> None:
    assert loss_of(parts) == sum(map(epsilon_of, parts))


@pytest.mark.slow
@given(tables(most=4, ensembles=1), tables(most=4, ensembles=1))
def test_groups_of_different_mergers_add(first: list[Part], second: list[Part]) -> None:
    """What one merger says of its tables says nothing of another's."""
    mine = [msgspec.structs.replace(each, disjoint=False, group="g", id="1" + each.id) for each in first]
    others = [msgspec.structs.replace(each, disjoint=False, group="h", id="2" + each.id) for each in second]
    assert loss_of([*mine, *others]) == max(map(epsilon_of, mine)) + max(map(epsilon_of, others))


@pytest.mark.slow
@given(tables())
def test_ensembles_add(parts: list[Part]) -> None:
    assert loss_of(parts) == sum(loss_of(mine) for mine in in_ensembles(parts))


@pytest.mark.slow
@given(tables(ensembles=1, most=3), tables(ensembles=1, most=3))
def test_different_columns_of_the_same_persons_add(first: list[Part], second: list[Part]) -> None:
    """Whatever is stated about the tables of one owner, its persons are in the other's tables too."""
    moved = [msgspec.structs.replace(each, ensemble=1) for each in second]
    assert loss_of([*first, *moved]) == loss_of(first) + loss_of(second)


@pytest.mark.slow
@given(tables(least=2))
def test_one_more_table_never_lowers_the_loss(parts: list[Part]) -> None:
    assert loss_of(parts[:-1]) <= loss_of(parts)


@pytest.mark.slow
@given(tables(group=nobody))
def test_a_statement_of_an_owner_never_raises_the_loss(parts: list[Part]) -> None:
    assert loss_of([msgspec.structs.replace(parts[0], disjoint=True), *parts[1:]]) <= loss_of(parts)


@pytest.mark.slow
@given(tables(group=nobody))
def test_a_statement_about_all_never_raises_the_loss(parts: list[Part]) -> None:
    assert loss_of([msgspec.structs.replace(each, group="g") for each in parts]) <= loss_of(parts)


def test_examples_by_hand() -> None:
    third, half = Fraction(1, 3), Fraction(1, 2)
    a, b, c = part(third, id="a"), part(third, id="b"), part(half, id="c")
    owners = [msgspec.structs.replace(each, disjoint=True) for each in (a, b, c)]
    merger = [msgspec.structs.replace(each, group="g") for each in (a, b, c)]
    assert loss_of([a]) == third
    assert loss_of([a, b, c]) == Fraction(7, 6)
    assert loss_of(owners) == loss_of(merger) == half
    assert loss_of([a, owners[1], owners[2]]) == Fraction(5, 6)  # a's owner says nothing: a person of b may be in a, too
    assert loss_of([merger[0], merger[1], c]) == Fraction(5, 6)
    assert loss_of([owners[0], merger[1], merger[2]]) == Fraction(5, 6)
    assert loss_of([owners[0], msgspec.structs.replace(owners[2], ensemble=1)]) == Fraction(5, 6)
    assert loss_of([merger[0], msgspec.structs.replace(merger[2], ensemble=1)]) == Fraction(5, 6)
    assert loss_of([a, msgspec.structs.replace(b, counted=False)]) == Fraction(2, 3)  # shaping the trees is a loss, too
    assert loss_of([part(Fraction(1, 10), id=str(i)) for i in range(3)]) == Fraction(3, 10)  # exactly


# ---------------------------------------------------------------- the certificate


@given(tables())
def test_the_claim_is_the_loss(parts: list[Part]) -> None:
    certificate = certificate_of(parts)
    assert certificate.guarantee == "epsilon-DP"
    assert certificate.epsilon == text_of_fraction(loss_of(parts))
    assert Fraction(certificate.epsilon) == loss_of(parts)
    assert sorted(each.key for each in certificate.parts) == sorted(each.key for each in parts)
    assert certificate.spent == sum((each.spent for each in parts), Fraction(0))
    assert len(certificate.events) == len(parts)


@pytest.mark.slow
@given(tables(least=1), st.data())
def test_a_problem_of_any_part_takes_the_claim_away(parts: list[Part], data: Any) -> None:
    place = data.draw(st.integers(0, len(parts) - 1))
    parts[place] = msgspec.structs.replace(parts[place], problem="the dog ate the noise")
    certificate = certificate_of(parts)
    assert (certificate.guarantee, certificate.epsilon) == ("none", None)
    assert "the dog ate the noise" in certificate.reason
    assert certificate.sentence() == f"no privacy guarantee: {certificate.reason}"
    if len(parts) > 1:
        assert parts[place].name in certificate.reason  # whose problem it is


@pytest.mark.slow
@given(tables(problem=st.sampled_from(["", "", "", "p", "q"])))
def test_there_is_a_claim_exactly_where_there_is_no_problem(parts: list[Part]) -> None:
    assert (certificate_of(parts).guarantee == "none") == any(each.problem for each in parts)


@pytest.mark.slow
@given(tables())
def test_neighbours_are_rows_of_one_table_and_persons_of_several(parts: list[Part]) -> None:
    certificate = certificate_of(parts)
    expected = (NEIGHBOURS, UNIT) if len(parts) == 1 else (NEIGHBOURS_OF_PARTS, UNIT_OF_PARTS)
    assert (certificate.neighbours, certificate.unit) == expected
    assert (NEIGHBOURS, UNIT) == ("add or remove one row", "one row")
    assert "person" in NEIGHBOURS_OF_PARTS
    assert UNIT_OF_PARTS == "one person"


@pytest.mark.slow
@given(tables(least=2))
def test_the_reason_names_the_rule(parts: list[Part]) -> None:
    reason = certificate_of(parts).reason
    said = any(each.disjoint or each.group for each in parts)
    one_each = len(in_ensembles(parts)) == len(parts)
    all_ = all(all_disjoint(mine) for mine in in_ensembles(parts))
    largest, some, nobody_ = ("the largest ε" in reason), ("only of some" in reason), ("nobody states" in reason)
    assert largest + some + nobody_ == (not one_each)
    assert largest == (all_ and not one_each)
    assert nobody_ == (not said and not one_each)
    if largest:
        assert loss_of(parts) == sum(max(map(epsilon_of, mine)) for mine in in_ensembles(parts))
    if nobody_:
        assert loss_of(parts) == sum(map(epsilon_of, parts))


@pytest.mark.slow
@given(tables(least=2))
def test_different_columns_are_named(parts: list[Part]) -> None:
    certificate = certificate_of(parts)
    assert ("different columns" in certificate.reason) == (len(in_ensembles(parts)) > 1)


@pytest.mark.slow
@given(tables(least=2))
def test_every_statement_stands_among_the_assumptions(parts: list[Part]) -> None:
    """Wherever the loss is less than the sum, the statements that make it so are there, with the names of the tables."""
    certificate = certificate_of(parts)
    assert certificate.assumptions[:2] == ["a", "b"]
    assert any("depends on that row alone" in line for line in certificate.assumptions)
    for says, which in [("each owner states", lambda each: each.disjoint)] + [
        (f"whoever merged (statement {group}) states", lambda each, group=group: each.group == group) for group in "gh"
    ]:
        names = [each.name for each in certificate.parts if which(each)]
        lines = [line for line in certificate.assumptions if line.startswith(says)]
        assert len(lines) == (len(names) > 1)
        assert all(line.endswith(f"two of these tables: {', '.join(names)}") for line in lines)
    if loss_of(parts) < sum(map(epsilon_of, parts)):
        assert any("no person has rows in two of these tables" in line for line in certificate.assumptions)


def test_one_table_says_nothing_about_others() -> None:
    alone = certificate_of([part(Fraction(1), disjoint=True, group="g", owner="north")])
    assert alone.assumptions == ["a", "b"]
    assert alone.reason == "every look at the rows was noised and charged before it was made"
    assert alone.sentence() == "ε = 1 differential privacy, neighbours: add or remove one row"


def test_assumptions_and_samplers_that_are_the_same_are_said_once() -> None:
    certificate = certificate_of([part(Fraction(1), id=id_, sampler=name) for id_, name in (("a", "x"), ("b", "y"), ("c", "x"))])
    assert certificate.assumptions.count("a") == 1
    assert certificate.sampler == "x; y"


def test_the_order_of_parts_is_by_ensemble_owner_and_name() -> None:
    names = [(1, "a", "a"), (0, "b", "b"), (0, "b", "a"), (0, "", "z")]
    certificate = certificate_of([part(Fraction(1), ensemble=e, owner=owner, id=id_) for e, owner, id_ in names])
    assert [(each.ensemble, each.owner, each.id) for each in certificate.parts] == sorted(names)


# ---------------------------------------------------------------- names and numbers


def test_names_of_tables() -> None:
    assert part(Fraction(1), id="2024").name == "2024"
    assert part(Fraction(1), id="2024", owner="north").name == "north (2024)"
    for bad in ("", " ", "a" * 201, "a\nb", "\x1b[2J", 3):
        with pytest.raises(PlanError, match="batch"):
            TableName(batch=bad)  # type: ignore[arg-type]
    for bad in (" ", "a" * 201, "a\nb", 0, 3):
        with pytest.raises(PlanError, match="owner"):
            TableName(owner=bad)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="disjoint"):
        TableName(disjoint="yes")  # type: ignore[arg-type]
    assert TableName("a" * 200, "é" * 200, True).disjoint


def test_a_batch_is_counted_once() -> None:
    counted = [part(Fraction(1), id="2024", owner="north")]
    with pytest.raises(PlanError, match="'2024' of 'north' is in the forest already"):
        TableName("2024", "north").check_new(counted)
    TableName("2024", "south").check_new(counted)
    TableName("2025", "north").check_new(counted)
    TableName(None, "north").check_new(counted)


def awkward(number: int) -> list[Part]:
    """Parts whose ε are short, and whose sum is not."""
    return [part(Fraction(10**45, 10**45 + 2 * k + 1), id=str(k)) for k in range(number)]


def test_numbers_that_are_made_to_grow_are_not_added_up() -> None:
    many = awkward(3_000)
    with pytest.raises(PlanError, match="too many digits"):
        loss_of(many)
    with pytest.raises(PlanError, match="too many digits"):
        msgspec.structs.replace(many[0], events=[each.events[0] for each in many]).spent  # noqa: B018
    with pytest.raises(PlanError, match="too many digits"):
        certificate_of(many)
    assert loss_of([msgspec.structs.replace(each, disjoint=True) for each in many]) < 1


@pytest.mark.parametrize("number", range(1, 12))
def test_a_claim_is_short_enough_for_its_own_file(number: int) -> None:
    """A release that is written can be read again; or it is refused with the reason before it is written."""
    try:
        epsilon = certificate_of(awkward(number)).epsilon
    except PlanError:
        assert number > 2
        return
    assert epsilon is not None
    assert plain_fraction(epsilon) == loss_of(awkward(number))
    assert number < 10


# ---------------------------------------------------------------- tables that shaped the trees


def test_what_a_table_gave_to_the_trees() -> None:
    """All that it lost; with a statement, what it lost before its counts, where that is the same whichever way a run goes."""
    rows = EventRecord("rows", "discrete Laplace", "0.01", 1, "1", "100")
    tried = EventRecord("leaf_counts", "discrete Laplace", "0.25", 1, "1", "4")
    kept = EventRecord("leaf_counts", "discrete Laplace", "0.5", 1, "1", "2")
    best = EventRecord("best", "permute-and-flip", "0.1", 1, "1", "10")
    whole = part(Fraction(1), events=[rows, kept], signed_by=["key"], released={"rows": 12}, disjoint=True, group="g")
    for looks, stated, events, epsilon in (
        ([rows, kept], False, [rows, kept], "1"), ([rows, kept], True, [rows], "0.01"),
        ([kept], False, [kept], "1"), ([kept], True, [], "0"),
        ([rows, tried, kept], True, [rows, tried, kept], "1"),  # a search: which way it went decided what it lost
        ([kept, best], True, [kept, best], "1"),  # something was chosen with the counts in hand
    ):  # fmt: skip
        shaped = shaping_part(msgspec.structs.replace(whole, events=looks), stated)
        assert (shaped.events, shaped.epsilon, shaped.counted, shaped.signed_by) == (events, epsilon, False, [])
        assert (shaped.key, shaped.released, shaped.disjoint, shaped.group) == (whole.key, whole.released, True, "")
        assert shaped.stated_beforehand is (looks != events)
        for again in (False, True):
            assert shaping_part(shaped, again) == shaped  # what was said of it is not for others to change


def test_the_old_name_of_a_query_warns() -> None:
    event = EventRecord.of(counting_event("rows", Fraction(1)))
    with pytest.warns(DeprecationWarning, match="use `query`"):
        assert event.verb == event.query == "rows"


def test_a_certificate_is_printed_as_its_sentence() -> None:
    """It was 80,000 characters: every charged look."""
    certificate = certificate_of([part(Fraction(1))])
    assert str(certificate) == certificate.sentence()
    assert repr(certificate) == f"Certificate({certificate.sentence()}; parts: 1, events: 1)"
