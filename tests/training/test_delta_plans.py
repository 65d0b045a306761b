"""Plans of counts with a δ: counted by owners, merged, rebuilt, and what each pays."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import exact as exact_answers
import numpy as np
import pytest
from scipy import stats
from strategies import small_schema, small_table

from hedgerow import Budget, HedgerowClassifier, PrivateRDTClassifier, PublicPlan, Release, SNRForestClassifier, count, merge
from hedgerow.accounting.noise import Gaussian
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, PlanError, ReleaseError
from hedgerow.training.shared_plans import rebuild, shown_plan

DELTA = Fraction(1, 10**6)
ALARM = 1e-7


def plan_of(kind: str, epsilon: str = "1") -> PublicPlan:
    if kind == "hedgerow":
        return HedgerowClassifier(small_schema(), epsilon=epsilon, delta="1e-6").public_plan()
    if kind == "snr":
        return SNRForestClassifier(small_schema(), epsilon=epsilon, random_state=3).public_plan(rows=5000, delta="1e-6")
    model = PrivateRDTClassifier(small_schema(), epsilon=epsilon, n_estimators=30, max_depth=4, random_state=3)
    return model.public_plan(rows=5000, delta="1e-6")


@pytest.mark.parametrize("kind", ["hedgerow", "rdt", "snr"])
def test_owners_count_and_merge(kind: str, tmp_path: Path) -> None:
    made = plan_of(kind)
    made.save(tmp_path / "plan.json")
    plan = PublicPlan.load(tmp_path / "plan.json")
    assert (plan.delta, plan.content_hash, rebuild(plan)) == (DELTA, made.content_hash, True)
    assert shown_plan(plan).delta == DELTA
    budgets = [Budget(1, DELTA) for _ in range(2)]
    each = [count(plan, *small_table(40 + i), owner=f"owner {i}", disjoint=True, budget=budget) for i, budget in enumerate(budgets)]
    assert all((budget.spent, budget.remaining_delta) == (1, 0) for budget in budgets)
    merged = merge(each)
    merged.save(tmp_path / "forest.json")
    certificate = Release.load(tmp_path / "forest.json").certificate
    assert (certificate.guarantee, certificate.epsilon, certificate.delta) == ("epsilon-delta-DP", "1", "0.000001")
    assert merged.forest.noise == (Gaussian(plan.event.scale),) * 2
    assert len(merged.predict(small_table(5)[0])) == 5


@pytest.mark.statistical
def test_the_noise_is_gaussian_at_what_was_charged() -> None:
    plan, table = plan_of("rdt", "2"), small_table(40)
    release = count(plan, *table)
    event = plan.event
    assert event.scale == Fraction(30) / (2 * event.rho)  # a row is in one cell of each of 30 trees
    exact = exact_answers.leaf_counts(MemoryRows(*table, plan.codebook), plan.trees)
    noise = np.concatenate([(a - b).ravel() for a, b in zip(release.forest.counts, exact, strict=True)]).astype(float)
    for wrong, agrees in ((1.0, True), (0.8, False), (1.25, False)):
        found = float((noise**2).sum()) / (wrong * float(event.scale))
        assert (ALARM < stats.chi2.sf(found, noise.size) < 1 - ALARM) == agrees


def test_what_is_refused_costs_nothing(tmp_path: Path) -> None:
    plan, pure = plan_of("rdt"), Budget(5)
    with pytest.raises(BudgetError):
        count(plan, *small_table(5), budget=pure)
    with pytest.raises(PlanError, match="Gaussian noise"):
        count(plan, *small_table(5), sampler="opendp")
    with pytest.raises(PlanError, match="delta"):
        HedgerowClassifier(small_schema(), epsilon=1, delta="1e-6").partial_fit(*small_table(5))
    assert not pure.spent
    text = plan.document()
    plan.save(tmp_path / "plan.json")
    damaged = (tmp_path / "plan.json").read_text().replace('"delta":"0.000001"', '"delta":"0.00001"')
    assert damaged != (tmp_path / "plan.json").read_text()
    with pytest.raises(ReleaseError):
        PublicPlan.from_json(damaged.encode())
    assert text.delta == "0.000001"


@pytest.mark.parametrize("merged", [True, False])
def test_counts_of_another_delta_are_not_merged_silently(merged: bool) -> None:
    """A pure plan is another plan; of two owners the larger (ε, δ) counts."""
    plan: Any = plan_of("rdt")
    forest = count(plan, *small_table(30), owner="a", disjoint=True)
    later = count(forest, *small_table(31), owner="b", disjoint=True, epsilon="1")  # in the trees of a forest: pure ε
    part = next(part for part in later.certificate.parts if part.counted)
    assert not part.exact_delta
    if merged:
        together = merge([forest, later])
        assert together.certificate.delta == "0.000001"
