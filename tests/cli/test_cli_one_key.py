"""One key is one owner: the same table counted twice and signed with one key is not certified as the tables of two owners."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow.release.release import Release

Run = Callable[..., Any]


@pytest.fixture
def counted(place: SimpleNamespace, run: Run) -> Callable[..., Any]:
    """counted("a.key", "once.json", …): counts of the same table, signed; then the file."""
    assert run("plan", "--schema", place.schema, "--epsilon", "1/2", "--rows", "2000", "--save", place.folder / "plan.json").exit_code == 0
    for name in "ab":
        assert run("key", "new", place.folder / f"clinic-{name}.key").exit_code == 0

    def count(key: str, output: str, *options: str) -> Any:
        words = ["count", place.folder / "plan.json", place.data, "-o", place.folder / output, "--sign", place.folder / key]
        result = run(*words, *options)
        assert result.exit_code == 0, result.output
        return place.folder / output

    return count


def test_the_key_names_the_owner(counted: Callable[..., Any]) -> None:
    assert [part.owner for part in Release.load(counted("clinic-a.key", "x.json")).certificate.parts] == ["clinic-a"]
    assert [part.owner for part in Release.load(counted("clinic-a.key", "y.json", "--owner", "A")).certificate.parts] == ["A"]


def test_one_key_under_two_names_is_not_disjoint(counted: Callable[..., Any], run: Run, place: SimpleNamespace) -> None:
    first, other = counted("clinic-a.key", "a.json", "--disjoint"), counted("clinic-b.key", "b.json", "--disjoint")
    again = counted("clinic-a.key", "a2.json", "--disjoint", "--owner", "Clinic a")
    merged = place.folder / "merged.json"
    refused = run("merge", first, again, other, "-o", merged)
    assert (refused.exit_code, "One key is one owner" in refused.stderr) == (2, True), refused.output
    assert not merged.exists()
    assert run("merge", first, other, "-o", merged).exit_code == 0  # two keys
    later = run("merge", merged, again, "-o", place.folder / "all.json")  # also in two steps
    assert (later.exit_code, "One key is one owner" in later.stderr) == (2, True), later.output
    stated = run("merge", first, again, "--batches", "-o", place.folder / "all.json")  # whoever merges says that these are other rows
    assert stated.exit_code == 0, stated.output


def test_without_a_statement_the_losses_add_up(counted: Callable[..., Any], run: Run, place: SimpleNamespace) -> None:
    files = counted("clinic-a.key", "a.json"), counted("clinic-a.key", "a2.json", "--owner", "Clinic a")
    assert run("merge", *files, "-o", place.folder / "sum.json").exit_code == 0
    assert Release.load(place.folder / "sum.json").certificate.epsilon == "1"
    refused = run("merge", *files, "--disjoint", "-o", place.folder / "largest.json")
    assert (refused.exit_code, "One key is one owner" in refused.stderr) == (2, True), refused.output


def test_who_signs_with_all_is_nobodys_owner(counted: Callable[..., Any], run: Run, place: SimpleNamespace) -> None:
    files = counted("clinic-a.key", "a.json", "--disjoint"), counted("clinic-b.key", "b.json", "--disjoint")
    assert run("key", "new", place.folder / "office.key").exit_code == 0
    for file in files:
        assert run("sign", file, "--key", place.folder / "office.key").exit_code == 0
    merged = run("merge", *files, "-o", place.folder / "merged.json")
    assert merged.exit_code == 0, merged.output
    assert Release.load(place.folder / "merged.json").certificate.epsilon == "0.5"
