"""Plans that are shared, counts that owners make, batches that come later: what is charged, and what may not depend on rows."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import exact as exact_answers
import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import small_schema, small_table
from streams import drawn_once

import hedgerow
from hedgerow import (
    Budget,
    BudgetFile,
    HedgerowClassifier,
    PrivateRDTClassifier,
    PublicPlan,
    Release,
    SNRForestClassifier,
    count,
    merge,
    merge_columns,
)
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError, SchemaError, SchemaMismatchWarning, SeenRowsWarning, TableError, UnreviewedSchemaWarning
from hedgerow.estimators import all_estimators
from hedgerow.estimators.mergeable import MergeableForestClassifier
from hedgerow.estimators.private import PrivateForestClassifier
from hedgerow.growers import rdt, snr
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.release.certificate import certificate_of
from hedgerow.release.files import with_hash
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.schema import Schema
from hedgerow.training import counting, shared_plans
from hedgerow.training.counting import cost_of, count_rows
from hedgerow.training.rows import open_rows
from hedgerow.training.shared_plans import rebuild, recipe_for

MERGEABLE = [each for each in all_estimators().values() if issubclass(each, MergeableForestClassifier)]
DRAWN = [each for each in MERGEABLE if each._algorithm.seeded]  # at random; the trees of the others follow from the schema
mergeable = pytest.mark.parametrize("algorithm", MERGEABLE)
drawn = pytest.mark.parametrize("algorithm", DRAWN)
mismatch = pytest.mark.filterwarnings("ignore::hedgerow.errors.SchemaMismatchWarning")
unreviewed = pytest.mark.filterwarnings("ignore::hedgerow.errors.UnreviewedSchemaWarning")


@drawn_once
def plan_of(algorithm: Any = PrivateRDTClassifier, epsilon: str = "1", seed: int = 0, rows: int | None = 2000) -> PublicPlan:
    return algorithm(small_schema(rows), epsilon, random_state=seed).public_plan()


@drawn_once
def depth_plan(epsilon: str = "1", seed: int = 0) -> PublicPlan:
    """A plan that needs no number of rows, as a fit with the same settings needs none."""
    return PrivateRDTClassifier(small_schema(), epsilon, n_estimators=3, max_depth=2, random_state=seed).public_plan()


def seeded(model: Any, seed: int) -> Any:
    model._coins = SeededCoins(seed)
    return model


@pytest.fixture
def coins(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Test coins for everything that is counted from here on."""

    def seeded_from_here(seed: int) -> None:
        for place, name in ((PrivateForestClassifier, "_coins"), (counting, "SYSTEM")):
            monkeypatch.setattr(place, name, SeededCoins(seed))

    return seeded_from_here


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time that rows are looked at."""
    seen: list[str] = []
    look = MemoryRows._open

    def spy(self: MemoryRows) -> Any:
        seen.append("look")
        return look(self)

    monkeypatch.setattr(MemoryRows, "_open", spy)
    return seen


def tempting_tables() -> dict[str, tuple[dict[str, np.ndarray], np.ndarray]]:
    """Tables that differ in everything that rows can differ in."""
    columns, labels = small_table(200)
    return {
        "usual": (columns, labels),
        "one row less": ({name: column[1:] for name, column in columns.items()}, labels[1:]),
        "empty": ({name: column[:0] for name, column in columns.items()}, labels[:0]),
        "one class": (columns, np.repeat("yes", 200)),
        "nonsense": ({name: np.repeat("no such value", 200) for name in columns}, np.repeat("no such class", 200)),
    }


# ---------------------------------------------------------------- plans


def test_the_mergeable_ones_are_found() -> None:
    assert set(MERGEABLE) == {HedgerowClassifier, PrivateRDTClassifier, SNRForestClassifier}
    assert set(DRAWN) == {PrivateRDTClassifier, SNRForestClassifier}


@pytest.mark.parametrize("algorithm", [each for each in all_estimators().values() if each not in MERGEABLE])
def test_others_have_neither_batches_nor_public_plans(algorithm: Any) -> None:
    for name in ("partial_fit", "public_plan"):
        assert not hasattr(algorithm, name)


@drawn
def test_one_seed_is_one_plan(algorithm: Any) -> None:
    make = algorithm(small_schema(2000), 1, random_state=7).public_plan
    assert make().content_hash == make().content_hash
    assert make().trees == make().trees
    assert make().seed == 7
    others = [algorithm(small_schema(2000), 1, random_state=seed).public_plan() for seed in range(8, 12)]
    assert any(other.trees != make().trees for other in others)


@drawn
def test_a_plan_without_a_seed_names_the_one_it_drew(algorithm: Any) -> None:
    plans = [algorithm(small_schema(2000), 1).public_plan() for _ in range(3)]
    assert len({plan.seed for plan in plans}) == 3
    for plan in plans:
        assert isinstance(plan.seed, int)
        assert algorithm(small_schema(2000), 1, random_state=plan.seed).public_plan().trees == plan.trees
        assert rebuild(plan)


@drawn
def test_seeds_of_other_kinds(algorithm: Any) -> None:
    plan = algorithm(small_schema(2000), 1, random_state=np.random.RandomState(3)).public_plan()
    assert plan.seed == np.random.RandomState(3).randint(2**31)
    assert rebuild(plan)
    assert algorithm(small_schema(2000), 1, random_state=np.int64(3)).public_plan().seed == 3
    for other in (np.random.default_rng(3), True, "3", 3.0):
        with pytest.raises(PlanError, match="random_state: a plan that is shared names its seed"):
            algorithm(small_schema(2000), 1, random_state=other).public_plan()


@drawn
def test_trees_that_depend_on_rows_need_a_public_number(algorithm: Any) -> None:
    with pytest.raises(PlanError, match="rows=10000"):
        algorithm(small_schema(), 1).public_plan()
    plan = algorithm(small_schema(), 1, random_state=0).public_plan(rows=2000)
    assert plan.trees == plan_of(algorithm).trees
    assert plan.schema.rows == 2000
    for bad in (0, -1, 1.5, True, "2000"):
        with pytest.raises(PlanError, match=r"rows: got .* expected a whole number"):
            algorithm(small_schema(), 1).public_plan(rows=bad)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(PlanError, match=r"tables: got .* expected a whole number"):
            algorithm(small_schema(2000), 1).public_plan(tables=bad)


def test_a_fixed_height_needs_no_number_of_rows() -> None:
    assert depth_plan().schema.rows is None
    assert depth_plan().chosen == {"height": 2}


@mergeable
def test_a_draft_is_not_shared(algorithm: Any) -> None:
    schema = small_schema(2000)
    for draft in (
        replace(schema, target=replace(schema.target, unreviewed=True)),
        replace(schema, attributes=[replace(schema.attributes[0], unreviewed=True), *schema.attributes[1:]]),
    ):
        with pytest.raises(SchemaError, match="not reviewed"):
            algorithm(draft, 1).public_plan()
    with pytest.raises(SchemaError, match="needs a declared schema"):
        algorithm("infer", 1).public_plan()


@mergeable
def test_the_loss_in_a_plan_is_exact(algorithm: Any, tmp_path: Path) -> None:
    plan = plan_of(algorithm, "1/3")
    plan.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["epsilon"] == "1/3"
    again = PublicPlan.load(tmp_path / "plan.json")
    assert again.epsilon == Fraction(1, 3)
    assert again.content_hash == plan.content_hash
    budget = Budget(1)
    release = count(again, *small_table(100), budget=budget)
    assert budget.spent == Fraction(1, 3)
    assert release.certificate.epsilon == "1/3"
    assert release.forest.noise == (3 * len(plan.trees),)


# ---------------------------------------------------------------- a plan can be made again from public facts


def of_settings(options: list[dict[str, Any]]) -> list[Any]:
    """Each algorithm with those of the options that it has."""
    return [(algorithm, option) for algorithm in MERGEABLE for option in options if set(option) <= {*algorithm._algorithm.defaults, "bins"}]


@mergeable
@settings(max_examples=25)
@given(seed=st.integers(0, 2**40), rows=st.integers(1, 50_000), tables=st.integers(1, 9), epsilon=st.sampled_from(["1/7", "1", "30"]))
def test_trees_follow_from_public_facts(algorithm: Any, seed: int, rows: int, tables: int, epsilon: str) -> None:
    plan = algorithm(small_schema(), epsilon, random_state=seed).public_plan(rows, tables)
    assert rebuild(plan)
    assert rebuild(PublicPlan.from_json(plan_json(plan)))


def plan_json(plan: PublicPlan) -> bytes:
    return msgspec.json.encode(plan.document())


@pytest.mark.parametrize(
    ("algorithm", "option"),
    of_settings([{"noise_rule": "tight"}, {"numeric_splits": "thresholds"}, {"max_depth": 3}, {"n_estimators": 2}, {"bins": 3}]),
)
def test_settings_are_part_of_what_can_be_made_again(algorithm: Any, option: dict[str, Any]) -> None:
    assert rebuild(algorithm(small_schema(2000), 5, random_state=1, **option).public_plan())


@drawn
def test_a_tree_that_does_not_follow_is_found(algorithm: Any) -> None:
    """Any one tree, any change in one: an attribute, the order of the trees, a tree less."""
    plan, other = plan_of(algorithm), plan_of(algorithm, seed=1)
    for number in range(len(plan.trees)):
        if plan.trees[number] != other.trees[number]:
            assert not rebuild(replace(plan, trees=(*plan.trees[:number], other.trees[number], *plan.trees[number + 1 :])))
    assert not rebuild(replace(plan, trees=other.trees))
    assert not rebuild(replace(plan, trees=plan.trees[:-1]))
    assert not rebuild(replace(plan, trees=plan.trees[::-1]))
    assert not rebuild(replace(plan, trees=(*plan.trees, plan.trees[0])))
    tree = plan.trees[0]
    branch = tree.branch.copy()
    first, second = (int(place) for place in tree.first_branch[0] + np.arange(2))
    branch[[first, second]] = branch[[second, first]]
    assert not rebuild(replace(plan, trees=(replace(tree, branch=branch), *plan.trees[1:])))


@drawn
def test_other_public_facts_do_not_make_the_same_plan(algorithm: Any) -> None:
    plan = plan_of(algorithm)
    assert not rebuild(replace(plan, seed=1))
    assert not rebuild(replace(plan, seed=None))
    assert not rebuild(replace(plan, seed=-1))
    assert not rebuild(replace(plan, vote="majority"))
    assert not rebuild(replace(plan, chosen={**plan.chosen, "height": 99}))
    assert not rebuild(replace(plan, chosen={}))
    assert not rebuild(replace(plan, tables=0))
    assert not rebuild(replace(plan, parameters={**plan.parameters, "remark": "Alice is ill"}))
    assert not rebuild(replace(plan, parameters={**plan.parameters, "bins": 99}))
    assert not rebuild(replace(plan, parameters={}))


@pytest.mark.parametrize("change", [{"n_estimators": 11}, {"max_depth": 1}, {"max_depth": 4}, {"numeric_splits": "thresholds"}])
def test_other_settings_do_not_make_the_same_trees(change: dict[str, Any]) -> None:
    plan = plan_of()
    assert not rebuild(replace(plan, parameters={**plan.parameters, **change}))


@pytest.mark.parametrize("change", [{"epsilon": Fraction(1, 50)}, {"tables": 900}, {"parameters": {"noise_rule": "x"}}])
def test_other_settings_do_not_make_the_same_snr_trees(change: dict[str, Any]) -> None:
    assert not rebuild(replace(plan_of(SNRForestClassifier), **change))


HOSTILE: list[dict[str, Any]] = [
    {"max_depth": 10**9, "max_leaves": 10**18, "n_estimators": 10**9},
    {"max_depth": 10**9, "max_leaves": 10**18},
    {"max_leaves": 10**18, "n_estimators": 10**12},
    {"max_depth": None, "max_leaves": 10**18},
    {"max_depth": -3},
    {"max_depth": "2"},
    {"max_leaves": 0},
    {"max_leaves": 2.5},
    {"n_estimators": 0},
    {"n_estimators": True},
    {"numeric_splits": 7},
    {"noise_rule": 7},
]


@pytest.mark.parametrize(("algorithm", "hostile"), of_settings(HOSTILE))
def test_hostile_settings_cost_no_more_than_the_plan_holds(
    algorithm: Any, hostile: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees of the full height would have 8^6 leaves each; those of the plan ask one question, or none."""
    schema = Schema([Categorical(f"a{i}", list(range(8))) for i in range(6)], Target("y", [0, 1]), 10**15)
    few = {"n_estimators": 1, "max_depth": 1} if algorithm is PrivateRDTClassifier else {}
    plan = algorithm(schema if few else replace(schema, rows=60), "0.1", random_state=0, **few).public_plan()
    plan = replace(plan, codebook=replace(plan.codebook, schema=schema))
    built: list[int] = []

    def spied(build: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*args: Any, **kwargs: Any) -> Any:
            tree = build(*args, **kwargs)
            built.append(len(tree.leaves))
            assert sum(built) <= 100, "work without end"
            return tree

        return spy

    for module, name in ((rdt, "build_tree_structure"), (snr, "build_random_tree")):
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    assert not rebuild(replace(plan, parameters={**plan.parameters, **hostile}))


@mergeable
@pytest.mark.parametrize("most", ["x", None])
def test_a_bound_that_is_no_number_is_no_crash(algorithm: Any, most: Any) -> None:
    plan = plan_of(algorithm)
    assert not rebuild(replace(plan, parameters={**plan.parameters, "max_leaves": most}))


@drawn
def test_attributes_of_one_value_cost_no_more_either(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions that split nothing make no leaves, so that a bound on leaves does not bound them: k trees of k nodes."""
    schema = Schema([Categorical(f"a{i}", [0]) for i in range(40)], Target("y", [0, 1]), 1)
    few = {"n_estimators": 10, "max_depth": 1} if algorithm is PrivateRDTClassifier else {}
    plan = algorithm(schema, "0.001", random_state=0, **few).public_plan()
    nodes: list[int] = []

    def spied(build: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*args: Any, **kwargs: Any) -> Any:
            tree = build(*args, **kwargs)
            nodes.append(tree.n_nodes)
            return tree

        return spy

    for module, name in ((rdt, "build_tree_structure"), (snr, "build_random_tree")):
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    parameters = {**plan.parameters, **({"max_depth": 40} if few else {})}
    hostile = replace(plan, parameters=parameters, codebook=replace(plan.codebook, schema=replace(schema, rows=10**12)))
    assert not rebuild(hostile)
    assert sum(nodes) <= 2 * sum(tree.n_nodes for tree in plan.trees) + 40


def test_a_plan_that_is_too_large_to_be_built_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    work = sum(tree.n_nodes for tree in plan_of().trees) * 4
    monkeypatch.setattr(shared_plans, "MAX_REBUILD", work)
    assert rebuild(plan_of())
    monkeypatch.setattr(shared_plans, "MAX_REBUILD", work - 1)
    with pytest.raises(PlanError, match="too large to be built again"):
        rebuild(plan_of())
    schema = Schema([Categorical(f"a{i}", [0]) for i in range(40)], Target("y", [0, 1]))
    chains = PrivateRDTClassifier(schema, 1, n_estimators=10, max_depth=40, random_state=0).public_plan()
    monkeypatch.setattr(shared_plans, "MAX_REBUILD", 100 * 40 * 40 * 10)
    assert rebuild(chains)
    monkeypatch.setattr(shared_plans, "MAX_REBUILD", 100 * 40 * 40 * 10 - 100)
    with pytest.raises(PlanError, match="too large to be built again"):
        rebuild(chains)


def test_a_plan_with_too_many_counts_costs_nothing(monkeypatch: pytest.MonkeyPatch, looks: list[str]) -> None:
    counts = sum(len(tree.leaves) for tree in depth_plan().trees) * 2
    monkeypatch.setattr(counting, "MAX_COUNTS", counts - 1)
    budget = Budget(1)
    with pytest.raises(PlanError, match=rf"its trees have {counts:,} counts.*Nothing was spent"):
        count(depth_plan(), *small_table(50), budget=budget)
    assert (budget.spent, looks) == (0, [])


@mergeable
def test_settings_in_a_plan_cannot_reach_what_is_the_owners(algorithm: Any, looks: list[str]) -> None:
    """A plan comes from somebody else: it may not choose the budget, the sampler, the seed or another schema."""
    plan = plan_of(algorithm)
    taken = {"schema": "infer", "epsilon": 10**6, "budget": None, "sampler": "none", "n_jobs": 10**6, "random_state": 5, "bins": 99}
    hostile = replace(plan, parameters={**plan.parameters, **taken, "_coins": 3, "no such setting": 1})
    recipe = recipe_for(hostile)
    assert (recipe.epsilon, recipe.random_state, recipe.bins) == (1, plan.seed, plan.codebook.bins)
    assert recipe.settings.keys() == recipe.algorithm.defaults.keys()  # a recipe has no room for anything else
    assert not rebuild(hostile)  # its settings are not those that the algorithm would state
    budget = Budget(1)
    release = count(hostile, *small_table(100), budget=budget)
    assert (budget.spent, release.certificate.epsilon, len(looks) > 0) == (1, "1", True)
    assert release.forest.trees == plan.trees
    assert release.forest.noise == (len(plan.trees),)


def test_a_plan_of_an_unknown_algorithm_is_refused() -> None:
    budget = Budget(1)
    with pytest.raises(PlanError, match="algorithm 'magic' is not known here; expected one of Hedgerow forest, Private-RDT, SNR forest"):
        count(replace(plan_of(), algorithm="magic"), *small_table(100), budget=budget)
    assert budget.spent == 0


# ---------------------------------------------------------------- count: charge, then look


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_the_same_counts_are_paid_once(kind: str, tmp_path: Path, looks: list[str]) -> None:
    """A cell of a notebook that is run twice."""
    budget = BudgetFile.create(tmp_path / "budget.json", 9) if kind == "file" else Budget(9)
    count(depth_plan(), *small_table(100), owner="A", budget=budget)
    looks.clear()
    who = re.escape(str(tmp_path / "budget.json")) if kind == "file" else "the budget"
    said = rf"{who} has paid for these counts already \(count Private-RDT of 'A': ε = 1 at .*Nothing was spent\..*again=True"
    with pytest.raises(PlanError, match=said):
        count(depth_plan(), *small_table(100), owner="A", budget=budget)
    with pytest.raises(PlanError, match="has paid for counts in these trees already, and nothing says that these are other rows"):
        count(depth_plan(), *small_table(100), budget=budget)
    assert (budget.spent, looks) == (1, [])
    for other in ({"owner": "B"}, {"owner": "A", "batch": "May"}, {"batch": "June"}, {"owner": "A", "again": True}, {"again": True}):
        count(depth_plan(), *small_table(100), budget=budget, **other)
    assert budget.spent == 6
    for same in ({"owner": "B"}, {"owner": "A", "batch": "May"}, {"batch": "June"}, {"batch": "May"}, {}):
        with pytest.raises(PlanError, match="Nothing was spent"):
            count(depth_plan(), *small_table(100), budget=budget, **same)
    for who in ("A", ""):  # for another ε in the same trees: merged with the first, these rows would count twice, as other people
        with pytest.raises(PlanError, match=r"has paid for .* already.* The same rows would be paid for twice, and may be merged once"):
            count(depth_plan("1/2"), *small_table(100), owner=who, budget=budget)
    count(depth_plan("1/2"), *small_table(100), owner="A", budget=budget, again=True)
    count(depth_plan(seed=1), *small_table(100), owner="A", budget=budget)  # other trees
    assert budget.spent == Fraction(15, 2)


def test_counts_that_were_paid_anew_at_first_are_known() -> None:
    budget = Budget(9)
    count(depth_plan(), *small_table(100), owner="A", budget=budget, again=True)
    with pytest.raises(PlanError, match="has paid for these counts already"):
        count(depth_plan(), *small_table(100), owner="A", budget=budget)


@mergeable
def test_the_charge_is_the_plans_and_comes_first(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    budget, spent = Budget("0.7"), []
    look = MemoryRows._open

    def spy(self: MemoryRows) -> Any:
        spent.append(budget.spent)
        return look(self)

    monkeypatch.setattr(MemoryRows, "_open", spy)
    release = count(plan_of(algorithm, "0.7"), *small_table(100), budget=budget)
    assert set(spent) == {Fraction("0.7")}
    assert budget.spent == Fraction("0.7") == release.certificate.spent
    assert [entry.what for entry in budget.entries] == [f"count {release.algorithm}"]
    assert [event.query for event in release.certificate.events] == ["leaf_counts"]
    assert release.certificate.guarantee == "epsilon-DP"


def test_a_budget_file_pays_too(tmp_path: Path) -> None:
    budget = BudgetFile.create(tmp_path / "budget.json", "0.5")
    count(depth_plan("1/3"), *small_table(100), budget=budget)
    assert budget.spent == Fraction(1, 3)
    with pytest.raises(BudgetError, match="short by"):
        count(depth_plan("1/3"), *small_table(100), batch="other rows", budget=budget)
    assert budget.spent == Fraction(1, 3)


@mergeable
def test_a_budget_that_cannot_pay_sees_nothing(algorithm: Any, looks: list[str], tmp_path: Path) -> None:
    budget = Budget("0.5")
    columns, labels = small_table(100)
    path = tmp_path / "rows.csv"
    pd.DataFrame({**columns, "class": labels}).to_csv(path, index=False)
    for rows in ((columns, labels), (path,)):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            count(plan_of(algorithm), *rows, budget=budget)
    assert budget.spent == 0
    assert looks == []


def without(columns: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    return {other: column for other, column in columns.items() if other != name}


BAD_ROWS: dict[str, Callable[[Path], tuple[Any, ...]]] = {
    "no file": lambda folder: (folder / "none.csv",),
    "a file and labels": lambda folder: (folder / "rows.csv", ["yes"]),
    "a file without a column": lambda folder: (folder / "less.csv",),
    "no column": lambda _: (without(small_table(50)[0], "age"), small_table(50)[1]),
    "no labels": lambda _: (small_table(50)[0],),
    "fewer labels": lambda _: (small_table(50)[0], small_table(49)[1]),
    "a narrow array": lambda _: (np.zeros((50, 3)), np.repeat("yes", 50)),
    "a wide array": lambda _: (np.zeros((50, 5)), np.repeat("yes", 50)),
    "numbers for labels": lambda _: (small_table(50)[0], np.zeros(50)),
}


@mismatch
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", list(BAD_ROWS))
@mergeable
def test_what_is_no_table_of_the_plan_costs_nothing(algorithm: Any, kind: str, tmp_path: Path, looks: list[str]) -> None:
    columns, labels = small_table(50)
    frame = pd.DataFrame({**columns, "class": labels})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.drop(columns="age").to_csv(tmp_path / "less.csv", index=False)
    budget = Budget(1)
    with pytest.raises(ValueError):
        count(plan_of(algorithm), *BAD_ROWS[kind](tmp_path), budget=budget)
    model = algorithm(small_schema(2000), 1, random_state=0, budget=Budget(2)).partial_fit(columns, labels)
    looks.clear()
    with pytest.raises(ValueError):
        model.partial_fit(*BAD_ROWS[kind](tmp_path))
    assert (budget.spent, model.budget.spent, looks) == (0, 1, [])
    assert len(model.release_.certificate.parts) == 1


BAD_NAMES: list[dict[str, Any]] = [
    {"batch": ""},
    {"batch": "x" * 201},
    {"batch": "two\nlines"},
    {"batch": "\x00"},
    {"batch": 5},
    {"batch": b"May"},
    {"owner": "x" * 201},
    {"owner": "\x1b[31m"},
    {"owner": 5},
    {"disjoint": 1},
    {"disjoint": "yes"},
    {"disjoint": None},
]


def refuses_the_name(names: dict[str, Any], looks: list[str]) -> None:
    budget = Budget(3)
    with pytest.raises(PlanError, match=f"^{next(iter(names))}: "):
        count(depth_plan(), *small_table(50), budget=budget, **names)
    model = PrivateRDTClassifier(small_schema(), 1, max_depth=1, budget=budget)
    with pytest.raises(PlanError, match=f"^{next(iter(names))}: "):
        model.partial_fit(*small_table(50), **names)
    assert (budget.spent, looks, hasattr(model, "release_")) == (0, [], False)


@pytest.mark.parametrize("names", BAD_NAMES)
def test_a_bad_name_is_refused_before_anything_is_spent(names: dict[str, Any], looks: list[str]) -> None:
    refuses_the_name(names, looks)


@pytest.mark.parametrize("owner", [None, 0, False, [], b""])
def test_an_owner_that_is_no_text_is_refused(owner: Any, looks: list[str]) -> None:
    refuses_the_name({"owner": owner}, looks)


def test_names_that_are_allowed() -> None:
    release = count(depth_plan(), *small_table(50), batch="x" * 200, owner="Klinik Süd 2")
    assert release.certificate.parts[0].key == ("Klinik Süd 2", "x" * 200)
    assert Release.from_json(release.to_json()).certificate == release.certificate


def test_an_unknown_sampler_or_budget_costs_nothing(looks: list[str]) -> None:
    budget = Budget(1)
    with pytest.raises(PlanError, match="sampler: got 'dice'"):
        count(depth_plan(), *small_table(50), sampler="dice", budget=budget)
    with pytest.raises(PlanError, match=r"budget: got 5; expected a hedgerow\.Budget"):
        count(depth_plan(), *small_table(50), budget=5)
    assert (budget.spent, looks) == (0, [])


def test_a_draft_schema_in_a_plan_is_refused(looks: list[str]) -> None:
    plan = depth_plan()
    draft = replace(plan.schema, target=replace(plan.schema.target, unreviewed=True))
    budget = Budget(1)
    with pytest.raises(SchemaError, match="not reviewed"):
        count(replace(plan, codebook=replace(plan.codebook, schema=draft)), *small_table(50), budget=budget)
    assert (budget.spent, looks) == (0, [])


# ---------------------------------------------------------------- count: which ε


def test_a_large_loss_must_be_said_by_whoever_counts(looks: list[str]) -> None:
    """The plan comes from somebody who would like to see more."""
    for epsilon, asks in (("10", False), ("10.01", True), ("1000", True)):
        plan, budget = depth_plan(epsilon), Budget(2000)
        if not asks:
            count(plan, *small_table(50), budget=budget)
            assert budget.spent == 10
            looks.clear()
            continue
        with pytest.raises(PlanError, match=rf"the file asks for ε = {epsilon},.*Nothing was spent\..*give the same ε yourself"):
            count(plan, *small_table(50), budget=budget)
        assert (budget.spent, looks) == (0, [])
        release = count(plan, *small_table(50), budget=budget, epsilon=epsilon)
        assert budget.spent == Fraction(epsilon)
        with pytest.raises(PlanError, match=f"the file asks for ε = {epsilon},"):
            count(release, *small_table(50), budget=budget)
        again = count(release, *small_table(50), budget=budget, epsilon=epsilon, again=True)
        assert [part.epsilon for part in again.certificate.parts] == [epsilon, epsilon]
        looks.clear()


def test_a_plan_fixes_its_loss(looks: list[str]) -> None:
    budget = Budget(5)
    for other in (2, "0.99", Fraction(1, 3)):
        with pytest.raises(PlanError, match="epsilon: the plan fixes ε = 1; leave epsilon out"):
            count(depth_plan(), *small_table(50), budget=budget, epsilon=other)
    for nonsense in (0, -1, "a", math.nan):
        with pytest.raises(PlanError, match="epsilon: got"):
            count(depth_plan(), *small_table(50), budget=budget, epsilon=nonsense)
    assert (budget.spent, looks) == (0, [])
    assert count(depth_plan(), *small_table(50), budget=budget, epsilon=1.0).certificate.epsilon == "1"


def test_the_loss_of_one_more_count_in_a_forest() -> None:
    release = count(depth_plan(), *small_table(50), owner="north")
    assert cost_of(release) == 1
    assert cost_of(release, "1/3") == Fraction(1, 3)
    assert count(release, *small_table(50), epsilon="1/3").forest.noise == (9,)
    mixed = merge([release, count(release, *small_table(50), epsilon="1/3")])
    with pytest.raises(PlanError, match=r"counted with different ε \(1, 1/3\)\. Give the one for the new rows"):
        count(mixed, *small_table(50))
    assert count(mixed, *small_table(50), epsilon=2).certificate.epsilon == "10/3"
    assert count(mixed, *small_table(50), epsilon=2, trees_chosen_beforehand=True).certificate.epsilon == "2"


def test_a_forest_of_other_trees_or_columns_cannot_be_counted_in(looks: list[str]) -> None:
    greedy = hedgerow.DPDFClassifier(small_schema(), 1).fit(*small_table(200)).release_
    halves = [Schema(small_schema().attributes[:2], small_schema().target), Schema(small_schema().attributes[2:], small_schema().target)]
    plans = [PrivateRDTClassifier(half, 1, n_estimators=2, max_depth=1, random_state=0).public_plan() for half in halves]
    columns, labels = small_table(100)
    united = merge_columns([count(plan, {name: columns[name] for name in plan.schema.names}, labels) for plan in plans])
    looks.clear()
    budget = Budget(5)
    with pytest.raises(ValueError, match="chosen by looking at its rows"):
        count(greedy, *small_table(50), budget=budget)
    with pytest.raises(PlanError, match="unites ensembles of owners with different columns"):
        count(united, *small_table(50), budget=budget)
    assert (budget.spent, looks) == (0, [])


def test_a_forest_of_exact_counts_is_refused_by_what_it_is() -> None:
    plain = hedgerow.RandomDecisionTreesClassifier(schema=small_schema()).fit(*small_table(200)).release_
    with pytest.raises(ValueError, match="exact counts without any privacy"):
        count(plain, *small_table(50))


def test_a_batch_that_is_there_already_costs_nothing(looks: list[str]) -> None:
    release = count(depth_plan(), *small_table(50), batch="May", owner="north")
    looks.clear()
    budget = Budget(5)
    with pytest.raises(PlanError, match="batch: 'May' of 'north' is in the forest already"):
        count(release, *small_table(50), batch="May", owner="north", budget=budget)
    assert (budget.spent, looks) == (0, [])
    for names in ({"batch": "May"}, {"batch": "June", "owner": "north"}, {"owner": "north"}):
        count(release, *small_table(50), budget=budget, **names)
    assert budget.spent == 3


# ---------------------------------------------------------------- trees that a table has shaped


def shaped(**settings: Any) -> Release:
    """A forest whose height follows from a noisy number of rows, which its first table paid for."""
    return PrivateRDTClassifier(small_schema(), 1, random_state=0, **settings).fit(*small_table(500)).release_


def test_a_table_that_shaped_the_trees_stays_in_the_claim() -> None:
    """With its whole ε: whoever took its trees may have looked at its counts first, although they are not in the release."""
    first = shaped()
    release = count(first, *small_table(100), owner="north")
    before, new = release.certificate.parts
    assert (before.counted, before.epsilon, [event.query for event in before.events]) == (False, "1", ["rows", "leaf_counts"])
    assert before.key == first.certificate.parts[0].key
    assert (new.owner, new.counted, new.epsilon) == ("north", True, "1")
    assert release.certificate.epsilon == "2"
    assert release.forest.noise == (10,)
    assert before.statement == "shaped the trees only"
    assert "chosen_beforehand" not in release.to_json().decode()
    assert not [text for text in release.certificate.assumptions if "depend on the counts" in text]
    assert Release.from_json(release.to_json()).certificate == release.certificate


def test_trees_that_are_stated_to_be_chosen_beforehand() -> None:
    """Then the table counts with what came before its counts: its n̂, of 3 % of ε. The certificate holds the statement."""
    first = shaped()
    release = count(first, *small_table(100), owner="north", trees_chosen_beforehand=True)
    before, new = release.certificate.parts
    assert (before.counted, before.epsilon, [event.query for event in before.events]) == (False, "0.03", ["rows"])
    assert (before.stated_beforehand, new.stated_beforehand) == (True, False)
    assert release.certificate.epsilon == "1.03"
    assert before.statement == "shaped the trees only; stated: they were taken without regard to its counts"
    said = f"whoever counted in these trees states that taking them did not depend on the counts of: {before.name}"
    assert said in release.certificate.assumptions
    again = Release.from_json(release.to_json())
    assert (again.certificate, again.content_hash) == (release.certificate, release.content_hash)


def test_a_search_that_shaped_the_trees_stays_in_the_claim() -> None:
    """Also with the statement: which way it went decided what the looks before the counts cost."""
    model = PrivateRDTClassifier(small_schema(2000), 1, random_state=0, n_estimators=2)
    first = model.tune(*small_table(2000), grid={"max_depth": [1, 2]}).release_
    for stated in (False, True):
        release = count(first, *small_table(100), trees_chosen_beforehand=stated)
        before = next(part for part in release.certificate.parts if not part.counted)
        assert (before.epsilon, before.stated_beforehand, release.certificate.epsilon) == ("1", False, "2")
        assert [event.query for event in before.events] == ["leaf_counts", "leaf_counts", "best_model", "leaf_counts"]


def test_trees_of_a_plan_were_chosen_by_somebody_too() -> None:
    """The trees hold nothing of the first table, but that they were taken may follow from its counts. A statement brings it to ε = 0."""
    first = count(depth_plan(), *small_table(100), owner="first")
    assert len(first.certificate.parts) == 1  # no rows are behind a plan in a file
    release = count(first, *small_table(100), owner="second")
    assert [(part.counted, part.epsilon) for part in release.certificate.parts] == [(False, "1"), (True, "1")]
    assert release.certificate.epsilon == "2"
    stated = count(first, *small_table(100), owner="second", trees_chosen_beforehand=True)
    before = stated.certificate.parts[0]
    assert (before.owner, before.epsilon, before.events, before.stated_beforehand) == ("first", "0", [], True)
    assert stated.certificate.epsilon == "1"
    assert Release.from_json(stated.to_json()).to_json() == stated.to_json()
    assert merge([first, stated]).certificate.epsilon == "2"


def test_all_tables_of_a_forest_stand_behind_its_trees() -> None:
    """Not the first alone."""
    plan = depth_plan()
    forest = merge([count(plan, *small_table(100, seed=seed), owner=name) for seed, name in enumerate("abc")])
    release = count(forest, *small_table(100, seed=9), owner="new")
    assert [(part.owner, part.counted, part.epsilon) for part in release.certificate.parts] == [
        ("a", False, "1"), ("b", False, "1"), ("c", False, "1"), ("new", True, "1"),
    ]  # fmt: skip
    assert release.certificate.epsilon == "4"
    stated = count(forest, *small_table(100, seed=9), owner="new", trees_chosen_beforehand=True)
    assert {part.owner for part in stated.certificate.parts if part.stated_beforehand} == {"a", "b", "c"}
    assert stated.certificate.epsilon == "1"
    names = ", ".join(part.name for part in stated.certificate.parts[:3])
    assert any(text.endswith(f"counts of: {names}") for text in stated.certificate.assumptions)


def test_nobody_states_how_others_chose_the_trees() -> None:
    """`b` was counted in the trees of `a` without a word, so what follows from the counts of `a` stays behind them."""
    first = shaped()
    second = count(first, *small_table(100, seed=1), owner="b")
    third = count(second, *small_table(100, seed=2), owner="c", trees_chosen_beforehand=True)
    found = {part.owner: (part.counted, part.epsilon, part.stated_beforehand) for part in third.certificate.parts}
    assert found == {"": (False, "1", False), "b": (False, "0", True), "c": (True, "1", False)}
    assert third.certificate.epsilon == "2"


def test_an_update_needs_no_statement() -> None:
    """The forest's own tables are in it with their counts and their whole ε, whatever was chosen by looking at them."""
    model = PrivateRDTClassifier(small_schema(), 1, random_state=0).partial_fit(*small_table(300), batch="a")
    model.partial_fit(*small_table(100), batch="b")
    assert [(part.counted, part.epsilon) for part in model.release_.certificate.parts] == [(True, "1"), (True, "1")]


def test_a_statement_about_the_trees_of_a_plan_is_refused(looks: list[str]) -> None:
    budget = Budget(5)
    for source, said in ((depth_plan(), True), (shaped(), "yes"), (depth_plan(), None)):
        looks.clear()
        with pytest.raises(PlanError, match=r"trees_chosen_beforehand: got .*expected True \(you state it\).*Nothing was spent"):
            count(source, *small_table(50), budget=budget, trees_chosen_beforehand=said)
        assert (budget.spent, looks) == (0, [])


def test_trees_of_a_forest_are_not_saved_as_a_plan(tmp_path: Path) -> None:
    """A plan in a file says that no rows are behind its trees."""
    for stated in (False, True):
        with pytest.raises(PlanError, match="does not name the tables behind them"):
            PublicPlan.of(shaped(), Fraction(1), stated).save(tmp_path / "plan.json")
    assert not list(tmp_path.iterdir())


def early(release: Release) -> Release:
    """As the first releases were written: what was counted last is left out, and nobody has stated anything."""
    parts = [
        part if part.counted else msgspec.structs.replace(part, events=part.events[:-1], epsilon="0.03")
        for part in release.certificate.parts
    ]
    document = msgspec.structs.replace(release.document(), certificate=certificate_of(parts), signatures=[])
    return Release.from_json(msgspec.json.encode(with_hash(document)))


def test_an_early_release_keeps_what_it_says() -> None:
    first = shaped()
    old = early(count(first, *small_table(100), owner="north"))
    assert old.certificate.epsilon == "1.03"
    assert Release.from_json(old.to_json()).to_json() == old.to_json()
    assert old.certificate.parts[0].statement == "shaped the trees only; without its counts, which nobody stated"
    later = count(old, *small_table(100, seed=1), owner="south", trees_chosen_beforehand=True)
    assert [(part.epsilon, part.stated_beforehand) for part in later.certificate.parts] == [("0.03", False), ("0", True), ("1", False)]


@pytest.mark.parametrize(("stated", "each", "whole"), [(False, "1", "3"), (True, "0.03", "1.06")])
def test_every_table_that_shaped_the_trees_stays_in_the_claim(stated: bool, each: str, whole: str) -> None:
    """Two tables of about as many rows have given trees of one height, each by its own n̂: whoever counts in them names both."""
    trees = merge([PrivateRDTClassifier(small_schema(), 1, random_state=0).fit(*small_table(2000, seed)).release_ for seed in range(2)])
    keys = {part.key for part in trees.certificate.parts}
    release = count(trees, *small_table(100), owner="north", epsilon=1, trees_chosen_beforehand=stated)
    shaped = [part for part in release.certificate.parts if not part.counted]
    assert {part.key for part in shaped} == keys
    assert [part.epsilon for part in shaped] == [each, each]
    assert release.certificate.epsilon == whole


def test_a_table_that_shaped_the_trees_is_named_once() -> None:
    first = shaped()
    a, b = (count(first, *small_table(100, seed=seed), owner=name) for seed, name in enumerate("ab"))
    assert merge([a, b]).certificate.epsilon == "3"
    assert [part.counted for part in merge([a, b]).certificate.parts] == [False, True, True]
    whole = merge([first, a, b])
    assert [part.counted for part in whole.certificate.parts] == [True, True, True]
    assert whole.certificate.epsilon == "3"
    for again in (merge([a, first, b]), merge([merge([a, b]), first]), merge([b, merge([first, a])])):
        assert again.to_json() == whole.to_json()
    assert merge([b, a]).to_json() == merge([a, b]).to_json()
    assert len(whole.forest.noise) == 3


def test_one_table_in_every_form_is_one_table() -> None:
    """Counted, whole, with a statement, as an early release wrote it: whatever the order, the form that claims the most is kept."""
    first = shaped()
    plain, old = count(first, *small_table(100, seed=1), owner="a"), early(count(first, *small_table(100, seed=2), owner="b"))
    stated = count(first, *small_table(100, seed=3), owner="c", trees_chosen_beforehand=True)
    for files, epsilon, counted in (
        ([plain, old, stated], "4", False), ([old, stated], "2.03", False), ([plain, stated], "3", False),
        ([first, stated], "2", True), ([first, plain, old, stated], "4", True),
    ):  # fmt: skip
        whole = merge(files)
        assert (whole.certificate.epsilon, whole.certificate.parts[0].counted) == (epsilon, counted)
        assert len(whole.certificate.parts) == len(files) + (first not in files)
        for order in permutations(files):
            assert merge(order).to_json() == whole.to_json()
            assert merge([merge(order[:2]), *order[2:]]).to_json() == whole.to_json()
            assert merge([order[0], merge(order[1:])]).to_json() == whole.to_json()
        assert Release.from_json(whole.to_json()).to_json() == whole.to_json()
    assert merge([old, stated]).certificate.parts[0].stated_beforehand  # who relies on a statement still says so


def test_a_merger_does_not_speak_of_a_table_that_is_not_merged() -> None:
    """That the owners of both files have no person in common says nothing of the table that shaped their trees."""
    first = shaped()
    stated = merge([count(first, *small_table(100), owner=name) for name in "ab"], disjoint=True)
    assert [(part.counted, bool(part.group)) for part in stated.certificate.parts] == [(False, False), (True, True), (True, True)]
    assert stated.certificate.epsilon == "2"


def test_how_a_table_that_shaped_the_trees_is_named_does_not_depend_on_the_order() -> None:
    first = shaped()
    a = count(first, *small_table(100, seed=1), owner="a")
    b = count(merge([first, count(first, *small_table(100), owner="x")], disjoint=True), *small_table(100, seed=2), owner="b")
    assert merge([a, b]).to_json() == merge([b, a]).to_json()
    assert {part.group for part in b.certificate.parts} == {""}  # what was stated at a merge was stated of the counts there


def test_the_loss_of_one_more_count_is_that_of_the_counts() -> None:
    assert cost_of(count(shaped(), *small_table(100))) == 1


# ---------------------------------------------------------------- names and structure do not depend on rows


def test_random_names_differ() -> None:
    names = {count(depth_plan(), *small_table(50)).certificate.parts[0].id for _ in range(5)}
    assert len(names) == 5
    assert all(len(name) == 32 for name in names)


@mismatch
@mergeable
def test_names_and_structure_are_the_same_for_any_rows(algorithm: Any, coins: Callable[[int], None]) -> None:
    """With the same coins everything but the counts is the same, whatever the table holds."""
    releases = []
    for table in tempting_tables().values():
        coins(5)
        releases.append(count(plan_of(algorithm), *table))
    first = releases[0]
    for release in releases:
        assert release.certificate == first.certificate
        assert release.certificate.parts[0].id == first.certificate.parts[0].id
        assert release.forest.trees == plan_of(algorithm).trees
        assert [counts.shape for counts in release.forest.counts] == [counts.shape for counts in first.forest.counts]
        same = [(r.algorithm, r.vote, r.parameters, r.chosen, r.forest.noise, r.schema) for r in (release, first)]
        assert same[0] == same[1]
    coins(6)
    assert count(plan_of(algorithm), *tempting_tables()["usual"]).certificate.parts[0].id != first.certificate.parts[0].id


@mergeable
@settings(max_examples=15)
@given(out=st.integers(0, 59), seed=st.integers(0, 2**20))
def test_one_row_changes_one_count_of_a_tree_by_one(algorithm: Any, out: int, seed: int) -> None:
    columns, labels = small_table(60)
    kept = np.arange(60) != out
    releases = []
    for rows in (np.ones(60, dtype=bool), kept):
        plan, coins = plan_of(algorithm), SeededCoins(seed)
        kept_rows = {name: column[rows] for name, column in columns.items()}
        engine = open_rows(recipe_for(plan), kept_rows, labels[rows], schema=plan.schema, coins=coins)
        releases.append(count_rows(engine, plan, hedgerow.release.certificate.TableName(), coins=coins))
    for whole, less in zip(*(release.forest.counts for release in releases), strict=True):
        changes = (whole - less)[whole != less]
        assert changes.tolist() in ([], [1])


def test_a_public_plan_has_no_way_to_see_rows() -> None:
    for algorithm in MERGEABLE:
        assert set(inspect.signature(algorithm.public_plan).parameters) == {"self", "rows", "tables", "delta"}
        assert set(inspect.signature(algorithm.plan).parameters) == {"self", "rows", "tables"}


@mismatch
@mergeable
def test_a_plan_of_a_fitted_model_is_that_of_its_settings(algorithm: Any) -> None:
    hashes = set()
    for table in tempting_tables().values():
        model = algorithm(small_schema(), 1, random_state=0).fit(*table)
        hashes.add(model.public_plan(rows=2000).content_hash)
    assert hashes == {algorithm(small_schema(), 1, random_state=0).public_plan(rows=2000).content_hash}


# ---------------------------------------------------------------- a count is what a fit would have been


def ways_in(folder: Path) -> dict[str, tuple[Any, ...]]:
    """The same rows, as people have them."""
    columns, labels = small_table(300)
    frame = pd.DataFrame({**columns, "class": labels})
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    return {
        "mapping": (columns, labels),
        "mapping with labels": ({**columns, "class": labels},),
        "pandas": (frame.drop(columns="class"), labels),
        "pandas with labels": (frame,),
        "csv": (folder / "rows.csv",),
        "parquet": (str(folder / "rows.parquet"),),
    }


def test_a_count_is_the_fit_bit_for_bit(coins: Callable[[int], None], tmp_path: Path) -> None:
    """With the same coins; also of two threads."""
    plan = depth_plan()
    model = PrivateRDTClassifier(small_schema(), 1, n_estimators=3, max_depth=2, random_state=0)
    fitted = seeded(model, 11).fit(*small_table(300)).release_
    for n_jobs in (1, 2):
        for kind, rows in ways_in(tmp_path).items():
            coins(11)
            assert count(plan, *rows, n_jobs=n_jobs).to_json() == fitted.to_json(), kind


@mismatch
@drawn
def test_a_count_and_a_fit_of_the_same_plan_can_be_merged(algorithm: Any, coins: Callable[[int], None], tmp_path: Path) -> None:
    """What is assumed about the number of rows is said in other words; nothing else differs."""
    plan = plan_of(algorithm)
    fitted = seeded(algorithm(small_schema(2000), 1, random_state=0), 11).fit(*small_table(300)).release_
    for rows in ways_in(tmp_path).values():
        coins(11)
        release = count(plan, *rows)
        assert all(np.array_equal(a, b) for a, b in zip(release.forest.counts, fitted.forest.counts, strict=True))
        assert (release.forest.trees, release.forest.noise) == (fitted.forest.trees, fitted.forest.noise)
    assert any("nobody compared" in text for text in release.certificate.assumptions)
    other = count(plan, *small_table(100, seed=4))
    assert len(merge([fitted, other]).certificate.parts) == 2


# ---------------------------------------------------------------- batches


@mismatch
@mergeable
def test_the_first_batch_is_a_fit(algorithm: Any) -> None:
    """But of a Hedgerow forest, whose boosted trees could not be added to: there it is the tables of all attributes."""
    if algorithm is HedgerowClassifier:
        pytest.skip("tests/growers/test_hedgerow.py: batches are counted in all tables from the first on")
    fitted, updated = (seeded(algorithm(small_schema(2000), 2, random_state=0), 3) for _ in range(2))
    fitted.fit(*small_table(300))
    updated.partial_fit(*small_table(300))
    assert updated.release_.to_json() == fitted.release_.to_json()
    assert updated.classes_.tolist() == fitted.classes_.tolist()
    assert updated.n_features_in_ == fitted.n_features_in_ == 4


@pytest.mark.parametrize("disjoint", [False, True])
def test_later_batches_are_added(disjoint: bool, coins: Callable[[int], None]) -> None:
    """The same, bit for bit, as counting each batch by itself and merging."""
    plan, budget = depth_plan(), Budget(10)
    model = PrivateRDTClassifier(small_schema(), 1, n_estimators=3, max_depth=2, random_state=0, budget=budget)
    alone = []
    for number, month in enumerate(("May", "June", "July")):
        seeded(model, number).partial_fit(*small_table(200, seed=number), batch=month, owner="north", disjoint=disjoint)
        assert budget.spent == number + 1
        coins(number)
        alone.append(count(plan, *small_table(200, seed=number), batch=month, owner="north", disjoint=disjoint))
        assert model.release_.to_json() == merge(alone, batches=True, disjoint=disjoint and number > 0).to_json()
    columns, _ = small_table(50)
    assert np.array_equal(model.predict_proba(columns), merge(alone, batches=True).predict_proba(columns))


def test_updating_and_merging_commute(coins: Callable[[int], None]) -> None:
    """An owner who adds a batch before the merge, and one whose batch is added after it."""
    plan = depth_plan()
    coins(1)
    mine = count(plan, *small_table(200, seed=1), owner="north")
    coins(2)
    yours = count(plan, *small_table(200, seed=2), owner="south")
    model = seeded(PrivateRDTClassifier(small_schema(), 1, n_estimators=3, max_depth=2, random_state=0), 3)
    model.release_ = mine
    model.partial_fit(*small_table(100, seed=3), batch="May", owner="north")
    merged = merge([mine, yours])
    coins(3)
    batch = count(merged, *small_table(100, seed=3), batch="May", owner="north")
    assert merge([model.release_, yours]).to_json() == merge([merged, batch], batches=True).to_json()


@mismatch
@mergeable
def test_losses_of_batches(algorithm: Any) -> None:
    """A batch that is stated to be disjoint has no person of the batches before it, if those have none in common."""
    no, yes = False, True
    all_of_them = {
        (no, no, no): "3", (yes, yes, yes): "1", (yes, no, no): "3", (no, yes, yes): "1",
        (no, yes, no): "2", (no, no, yes): "3", (yes, yes, no): "2", (yes, no, yes): "2",
    }  # fmt: skip
    for disjoint, total in all_of_them.items():
        model = algorithm(small_schema(2000), 1, random_state=0)
        for seed, stated in enumerate(disjoint):
            model.partial_fit(*small_table(100, seed=seed), disjoint=stated)
        certificate = model.release_.certificate
        assert (certificate.guarantee, certificate.epsilon) == ("epsilon-DP", total)
        assert len({part.id for part in certificate.parts}) == 3
        if algorithm in DRAWN:  # all ε of the first batch, too, paid for its counts
            assert model.release_.forest.noise == (len(model.release_.forest.trees),) * 3


@mismatch
@mergeable
def test_a_batch_may_cost_something_else(algorithm: Any) -> None:
    budget = Budget(3)
    model = algorithm(small_schema(2000), 1, random_state=0, budget=budget).partial_fit(*small_table(100))
    model.set_params(epsilon="1/3").partial_fit(*small_table(100, seed=1), batch="May")
    trees = len(model.release_.forest.trees)
    scales = {part.id == "May": scale for part, scale in zip(model.release_.certificate.parts, model.release_.forest.noise, strict=True)}
    assert scales[True] == 3 * trees
    assert scales[False] == trees or algorithm not in DRAWN
    assert budget.spent == Fraction(4, 3) == Fraction(model.release_.certificate.epsilon)


@drawn
def test_a_private_number_of_rows_is_paid_once(algorithm: Any) -> None:
    """The first batch pays for n̂; later ones, in the same trees, need none."""
    model = algorithm(small_schema(), 1, random_state=0).partial_fit(*small_table(500), batch="first")
    trees = model.release_.forest.trees
    model.partial_fit(*small_table(500, seed=1), batch="second")
    first, second = model.release_.certificate.parts
    assert ([event.query for event in first.events], list(first.released)) == (["rows", "leaf_counts"], ["rows"])
    assert ([event.query for event in second.events], second.released) == (["leaf_counts"], {})
    assert model.release_.forest.noise == (len(trees) / Fraction(97, 100), len(trees))
    assert model.release_.forest.trees == trees
    assert Release.from_json(model.release_.to_json()).forest.noise == model.release_.forest.noise


@mismatch
@mergeable
def test_a_batch_is_not_added_twice(algorithm: Any, looks: list[str]) -> None:
    budget = Budget(9)
    model = algorithm(small_schema(2000), 1, random_state=0, budget=budget).partial_fit(*small_table(100), batch="May")
    model.partial_fit(*small_table(100, seed=1), batch="June")
    before = model.release_.to_json()
    looks.clear()
    for batch in ("May", "June"):
        with pytest.raises(PlanError, match=rf"batch: '{batch}' is in the forest already\. The same rows cannot be counted twice"):
            model.partial_fit(*small_table(100, seed=2), batch=batch)
    assert (budget.spent, looks) == (2, [])
    assert model.release_.to_json() == before


@mismatch
@mergeable
def test_a_budget_that_is_used_up_leaves_the_forest_as_it_was(algorithm: Any, looks: list[str]) -> None:
    budget = Budget("1.5")
    model = algorithm(small_schema(2000), 1, random_state=0, budget=budget).partial_fit(*small_table(100))
    before = model.release_.to_json()
    looks.clear()
    with pytest.raises(BudgetError, match="Nothing was spent"):
        model.partial_fit(*small_table(100, seed=1))
    assert (budget.spent, looks) == (1, [])
    assert model.release_.to_json() == before


def test_a_batch_is_read_by_the_schema_of_the_forest() -> None:
    """Settings that were changed in between do not change the trees or the cells."""
    model = PrivateRDTClassifier(small_schema(), 100, n_estimators=3, max_depth=2, random_state=0)
    model.partial_fit(*small_table(300))
    trees, counts = model.release_.forest.trees, [each.copy() for each in model.release_.forest.counts]
    model.set_params(bins=9, n_estimators=8, max_depth=1, random_state=4).partial_fit(*small_table(300, seed=1))
    assert model.release_.forest.trees == trees
    assert model.release_.codebook.bins == 5
    exact = exact_answers.leaf_counts(MemoryRows(*small_table(300, seed=1), model.release_.codebook), list(trees))
    for after, before, added in zip(model.release_.forest.counts, counts, exact, strict=True):
        assert np.abs(after - before - added).max() < 10  # noise of scale 0.03


def test_batches_in_other_containers() -> None:
    columns, labels = small_table(100)
    model = PrivateRDTClassifier(small_schema(), 1, max_depth=2, random_state=0).partial_fit(pd.DataFrame(columns), labels)
    model.partial_fit(pd.DataFrame({**columns, "class": labels}))
    model.partial_fit({**columns, "class": labels})
    model.partial_fit(columns, list(labels))
    assert len(model.release_.certificate.parts) == 4
    with pytest.raises(TableError, match="are missing"):
        model.partial_fit(pd.DataFrame(columns)[["age", "flag"]], labels)


def test_fit_starts_anew() -> None:
    model = PrivateRDTClassifier(small_schema(), 1, max_depth=2, random_state=0, budget=Budget(9))
    model.partial_fit(*small_table(100)).partial_fit(*small_table(100)).fit(*small_table(100))
    assert len(model.release_.certificate.parts) == 1
    assert model.release_.certificate.epsilon == "1"
    assert model.budget.spent == 3
    assert len(model.partial_fit(*small_table(100)).release_.certificate.parts) == 2


# ---------------------------------------------------------------- batches: classes and drafts


def test_declared_classes_are_checked_before_anything_is_spent(looks: list[str]) -> None:
    budget = Budget(9)
    model = PrivateRDTClassifier(small_schema(), 1, max_depth=2, random_state=0, budget=budget)
    for _ in range(2):
        with pytest.raises(SchemaError, match="classes: maybe are not declared in the schema"):
            model.partial_fit(*small_table(100), classes=["no", "yes", "maybe"])
        assert looks == []
        assert budget.spent == (1 if hasattr(model, "release_") else 0)
        model.partial_fit(*small_table(100), classes=["yes"])
        looks.clear()
    assert model.classes_.tolist() == ["no", "yes"]
    assert budget.spent == 2


@unreviewed
@mergeable
def test_an_inferred_schema_takes_the_classes_that_may_come(algorithm: Any) -> None:
    rows, labels = np.array([[0, 1], [1, 0]] * 100), np.array([0, 1] * 100)
    model = algorithm("infer", 50, random_state=0).partial_fit(rows, labels, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(rows.copy(), np.repeat(2, 200))
    model.partial_fit(rows.copy(), np.repeat(2, 200))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict(rows).tolist() == [2] * 200
    certificate = model.release_.certificate
    assert (certificate.guarantee, certificate.epsilon, len(certificate.parts)) == ("none", None, 3)
    assert all("not reviewed" in part.problem for part in certificate.parts)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(rows[:, :1], labels)
    assert len(model.release_.certificate.parts) == 3


def test_the_same_table_is_not_counted_twice_as_other_people() -> None:
    """A cell that was run again: ε = 1 was certified for people who had lost 2, without a word."""
    budget, (first, labels) = Budget(9), small_table(100)
    second = pd.DataFrame(small_table(100)[0])
    model = PrivateRDTClassifier(small_schema(), 1, max_depth=2, budget=budget).partial_fit(first, labels, disjoint=True)
    model.partial_fit(second, labels, disjoint=True)
    with pytest.raises(PlanError, match=r"counted already \(its table in memory\), so that disjoint=True is not so.*Nothing was spent"):
        model.partial_fit(second, labels, disjoint=True)
    assert budget.spent == 2
    model.partial_fit(second, labels, disjoint=True, other_rows=True)  # filled anew, as is stated
    with pytest.warns(SeenRowsWarning, match="counted already"):
        model.partial_fit(second, labels)
    assert (budget.spent, model.release_.certificate.epsilon) == (4, "2")


def test_counts_without_a_name_are_not_said_to_be_the_same() -> None:
    budget, (columns, labels) = Budget(9), small_table(100)
    forest = PrivateRDTClassifier(small_schema(), 1, max_depth=2).fit(columns, labels).release_
    count(forest, columns, labels, budget=budget)
    with pytest.raises(PlanError, match="counts in these trees already, and nothing says that these are other rows"):
        count(forest, *small_table(50), budget=budget)
    count(forest, *small_table(50), budget=budget, batch="march")
    with pytest.raises(PlanError, match="these counts already"):
        count(forest, *small_table(50), budget=budget, batch="march")


def test_an_inferred_schema_is_confessed() -> None:
    rows, labels = np.array([[0, 1], [1, 0]] * 20), np.array([0, 1] * 20)
    with pytest.warns(UnreviewedSchemaWarning):
        PrivateRDTClassifier("infer", 1, max_depth=1).partial_fit(rows, labels)


def test_a_draft_needs_consent_for_every_batch() -> None:
    schema = replace(small_schema(), target=replace(small_schema().target, unreviewed=True))
    model = PrivateRDTClassifier(schema, 1, max_depth=2)
    with pytest.raises(SchemaError, match="not reviewed"):
        model.partial_fit(*small_table(50))
    with pytest.warns(UnreviewedSchemaWarning):
        model.partial_fit(*small_table(50), accept_draft=True)
    with pytest.raises(SchemaError, match="not reviewed"):
        model.partial_fit(*small_table(50))
    assert model.partial_fit(*small_table(50), accept_draft=True).release_.certificate.guarantee == "none"
    assert len(model.release_.certificate.parts) == 2


# ---------------------------------------------------------------- what was paid for is kept


def odd_batch() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Half of its rows hold a value of `flag` that is not declared and has no branch."""
    columns, labels = small_table(1000, seed=1)
    return {**columns, "flag": np.where(np.arange(1000) % 2, 7, columns["flag"])}, labels


def test_a_warning_made_an_error_loses_nothing() -> None:
    """All warnings of this package are errors in these tests: the batch is kept before its warning is given."""
    budget = Budget(200)
    model = PrivateRDTClassifier(small_schema(), 50, n_estimators=8, max_depth=1, random_state=0, budget=budget)
    model.partial_fit(*small_table(20_000), batch="good")
    before = [counts.sum() for counts in model.release_.forest.counts]
    with pytest.raises(SchemaMismatchWarning, match="are not counted there"):
        model.partial_fit(*odd_batch(), batch="odd")
    assert [part.id for part in model.release_.certificate.parts] == ["good", "odd"]
    assert budget.spent == 100 == Fraction(model.release_.certificate.epsilon)
    after = [counts.sum() for counts in model.release_.forest.counts]
    assert all(900 < b - a < 1100 or 400 < b - a < 600 for a, b in zip(before, after, strict=True))
    assert len(set(np.round(np.subtract(after, before), -2))) == 2
    assert len(model.partial_fit(*small_table(100), batch="more").release_.certificate.parts) == 3
    assert model.classes_.tolist() == ["no", "yes"]


def test_the_first_batch_is_kept_too() -> None:
    budget = Budget(50)
    model = PrivateRDTClassifier(small_schema(), 50, n_estimators=8, max_depth=1, random_state=0, budget=budget)
    with pytest.raises(SchemaMismatchWarning):
        model.partial_fit(*odd_batch(), batch="odd")
    assert [part.id for part in model.release_.certificate.parts] == ["odd"]
    assert budget.spent == 50


def test_a_count_that_was_paid_for_comes_with_its_warning() -> None:
    plan = PrivateRDTClassifier(small_schema(), 10, n_estimators=8, max_depth=1, random_state=0).public_plan()
    budget = Budget(10)
    with pytest.raises(SchemaMismatchWarning) as raised:
        count(plan, *odd_batch(), batch="odd", budget=budget)
    release = raised.value.release
    assert (budget.spent, release.certificate.epsilon) == (10, "10")
    assert [part.id for part in release.certificate.parts] == ["odd"]
    with pytest.warns(SchemaMismatchWarning):
        assert count(plan, *odd_batch()).forest.trees == release.forest.trees


def test_any_name_leaves_room_for_another_batch() -> None:
    """Also the names by which the steps are tried before anything is paid."""
    model = PrivateRDTClassifier(small_schema(), 1, max_depth=2, random_state=0)
    for name in ("trial", "trial 0", "trial 1", None, "trial 2", None):
        model.partial_fit(*small_table(50), batch=name)
    assert len(model.release_.certificate.parts) == 6


def test_a_count_that_fails_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows were looked at: nothing is given back."""

    def fail(*_: Any) -> Any:
        raise RuntimeError("the disk is gone")

    budget = Budget(3)
    model = PrivateRDTClassifier(small_schema(), 1, max_depth=2, random_state=0, budget=budget).partial_fit(*small_table(50))
    before = model.release_.to_json()
    monkeypatch.setattr(MemoryRows, "_leaf_counts", fail)
    with pytest.raises(RuntimeError):
        model.partial_fit(*small_table(50))
    with pytest.raises(RuntimeError):
        count(depth_plan(), *small_table(50), budget=budget)
    assert budget.spent == 3
    assert model.release_.to_json() == before


# ---------------------------------------------------------------- plans for several tables


@drawn
@pytest.mark.parametrize("tables", [2, 4, 25])
def test_noise_that_is_planned_grows_by_the_root(algorithm: Any, tables: int) -> None:
    model = algorithm(small_schema(), 1, random_state=0)
    one, many = model.plan(rows=5000), model.plan(rows=5000, tables=tables)
    assert many.tables == tables
    assert len(many.trees) == len(one.trees)
    assert many.noise_sd == pytest.approx(math.sqrt(tables) * one.noise_sd)
    assert f"of {tables} tables together" in str(many)
    assert many.epsilon == one.epsilon == 1


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.integers(0, 2**32), st.integers(1, 100_000), st.integers(2, 5), st.integers(1, 500),
    st.fractions(Fraction(1, 10), 20, max_denominator=10),
)  # fmt: skip
def test_snr_trees_are_no_larger_for_more_tables(seed: int, rows: int, values: int, tables: int, epsilon: Fraction) -> None:
    """Fewer trees, or as many that are no higher; no node that the noise of all tables would drown."""
    schema = Schema([Categorical(f"a{i}", list(range(values))) for i in range(5)], Target("y", [0, 1]))
    model = SNRForestClassifier(schema, epsilon, random_state=seed)
    one, many = model.plan(rows), model.plan(rows, tables)
    assert len(many.trees) <= len(one.trees)
    if len(many.trees) == len(one.trees):
        assert (many.height, many.n_leaves) <= (one.height, one.n_leaves)
    theta = 2 * math.sqrt(2 * tables) * len(many.trees) / float(epsilon)
    for tree in many.trees:
        for node in range(1, tree.n_nodes):
            assert rows / values ** len(tree.path(node)) > theta * (1 - 1e-9)


@given(tables=st.integers(1, 400), trees=st.integers(1, 6))
def test_the_least_support_of_several_tables_is_equation_5(tables: int, trees: int) -> None:
    epsilon = Fraction(1, trees)
    for rule, classes in (("paper", 3), ("tight", math.sqrt(3))):
        theta = math.sqrt(snr.squared_threshold(3, epsilon, snr.Settings(noise_rule=rule, tables=tables)))
        assert theta == pytest.approx(classes * math.sqrt(2) * trees * math.sqrt(tables))


@mergeable
def test_one_table_is_planned_as_ever(algorithm: Any) -> None:
    model = algorithm(small_schema(), "1/3", random_state=0)
    assert str(model.plan(rows=5000, tables=1)) == str(model.plan(rows=5000))
    assert model.plan(rows=5000, tables=1).trees == model.plan(rows=5000).trees
    assert "of several tables together" not in str(model.plan(rows=5000))
    for bad in (0, -2, 1.5, True, None):
        with pytest.raises(PlanError, match="tables: got"):
            model.plan(rows=5000, tables=bad)


def test_the_number_of_tables_stands_in_the_plan_alone() -> None:
    """It shapes the trees; owners who count one plan have the same settings whatever it says."""
    plans = [SNRForestClassifier(small_schema(3000), 1, random_state=0).public_plan(tables=tables) for tables in (1, 400)]
    assert plans[1].tables == 400
    assert sum(len(tree.leaves) for tree in plans[1].trees) < sum(len(tree.leaves) for tree in plans[0].trees)
    assert all("tables" not in plan.parameters for plan in plans)
    assert not hasattr(SNRForestClassifier(None, 1), "tables")
    assert rebuild(plans[1])
    assert not rebuild(replace(plans[1], tables=1))


@pytest.mark.parametrize("make", [SNRForestClassifier, PrivateRDTClassifier])
def test_a_shared_plan_without_rows_says_which_call_wants_them(make: Any) -> None:
    with pytest.raises(PlanError, match=r"^public_plan: .* public_plan\(rows=10000\)"):
        make(replace(small_schema(), rows=None), 1).public_plan()
