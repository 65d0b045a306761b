"""What the command line notes with a charge: by it the rows of a forest are known again, and no others are taken for them."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow.accounting.meter import Entry
from hedgerow.accounting.noted_counts import note, paid_within, rows_at, short_hash

RANDOM = "0123456789abcdef" * 2
HERE, THERE = ["/a.csv", None, None], ["/b.csv", None, None]


def entry(what: str, key: str = "k") -> Entry:
    return Entry(key, "2026-01-01T00:00:00Z", what, Fraction(1))


def release(content: str, *ids: str) -> SimpleNamespace:
    parts = [SimpleNamespace(id=id, key=("", id), counted=True) for id in ids]
    return SimpleNamespace(content_hash=content, certificate=SimpleNamespace(parts=parts))


def found(entries: list[Entry], place: list[str | None], forest: Any) -> Entry | None:
    return paid_within(entries, place, forest, forest.certificate.parts)


def noted(forest: Any, place: list[str | None], before: Any = None) -> Entry:
    return entry(f"fit{note(place, forest, forest.certificate.parts[-1], before)}")


def test_a_table_with_a_random_name_is_known_wherever_it_is_merged() -> None:
    fit = noted(release("1", RANDOM), HERE)
    assert found([fit], HERE, release("merged", "other", RANDOM)) is fit
    assert found([fit], THERE, release("1", RANDOM)) is None
    assert found([fit], HERE, release("2", "f" * 32)) is None


def test_a_table_with_a_declared_name_is_known_by_its_release_and_what_was_added_to_it() -> None:
    first, other = release("1", "jan"), release("2", "jan")
    more = release("3", "jan", "feb")
    most = release("4", "jan", "feb", RANDOM)
    entries = [
        noted(first, HERE),
        noted(other, THERE),
        noted(more, ["/feb.csv"], first),
        entry("evaluate"),
        noted(most, ["/mar.csv"], more),
    ]
    for forest in (first, more, most, release("merged", RANDOM)):
        assert found(entries, HERE, forest) is entries[0]
        assert found(entries, THERE, forest) is None
    assert found(entries, THERE, other) is entries[1]
    assert found(entries, HERE, release("merged", "jan", "feb")) is None


def test_fits_that_noted_no_rows_are_known_by_their_key() -> None:
    table = short_hash(["", RANDOM])
    fit = entry(f"fit, counts {table}", f"{rows_at(HERE)}00000000000000000000-f-0")
    assert found([fit], HERE, release("1", RANDOM)) is fit
    assert found([fit], THERE, release("1", RANDOM)) is None
    declared = entry(f"fit, counts {short_hash(['', 'jan'])}", fit.key)
    assert found([declared], HERE, release("1", "jan")) is None  # it may be another January


@pytest.mark.parametrize("what", ["fit", "count of 'a', batch 'x, counts 0123456789ab'", "evaluate, accuracy"])
def test_people_are_not_shown_what_is_noted(what: str) -> None:
    assert entry(what).shown == what
    for before in (None, release("2")):
        assert entry(f"{what}{note(HERE, release('1'), release('1', RANDOM).certificate.parts[0], before)}").shown == what
