"""Rows counted in trees that are there already: a plan that owners share, or a forest that a batch is added to.

A structure that does not depend on rows can be counted on any number of tables (Jagannathan et al. 2012, 5.2 and 5.3).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.events import Event
from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.accounting.meter import Budget, checked_budget
from hedgerow.accounting.noise import noise_of
from hedgerow.accounting.paid_counts import Counts
from hedgerow.accounting.units import Unit
from hedgerow.engines.engine import Engine, Progress
from hedgerow.errors import HedgerowWarning, PlanError
from hedgerow.mechanisms.coins import SYSTEM, Coins, random_name
from hedgerow.mechanisms.noise import check_shared_noise, sampler_named
from hedgerow.mechanisms.shares import SecureSum
from hedgerow.parallel import threads_of
from hedgerow.private_table import is_private_table, private_table, reserved
from hedgerow.queries import LeafCounts
from hedgerow.release.certificate import all_disjoint, part_of, planned_rows
from hedgerow.release.document import check_total
from hedgerow.release.merging import merge
from hedgerow.release.merging_checks import check_random_trees
from hedgerow.release.parts import TableName, Together
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.training.fit import Keep, check_delta
from hedgerow.training.rows import open_rows
from hedgerow.training.settling import settled
from hedgerow.training.shared_plans import recipe_for


@dataclass(frozen=True)
class Agreement:
    """What owners who count together have agreed on, the same for all: the run's name, who they are, what their engines assume."""

    id: str
    together: Together
    assumed: str
    secure_sum: SecureSum


MAX_COUNTS = 100_000_000  # of one plan: 800 MB
LARGE = 10  # an ε above this is not taken from somebody else's file


def count(
    plan: PublicPlan | Release,
    X: Any,
    y: Any = None,
    *,
    owner: str = "",
    batch: str | None = None,
    disjoint: bool = False,
    epsilon: Any = None,
    budget: Budget | None = None,
    sampler: str = "hedgerow",
    n_jobs: int | None = None,
    progress: Progress | None = None,
    trees_chosen_beforehand: bool = False,
    other_rows: bool = False,
    again: bool = False,
) -> Release:
    """One owner's noisy counts in the trees of a plan (or of a forest): a release to be merged with those of others.

    X may be a file or a table with the columns of the plan's schema. `disjoint`: you state that a person with rows here has none in
    another table that is counted in these trees, and that which table a row is in depends on that row alone. Where two owners both state
    it, the larger of their ε counts; otherwise they add up. If a warning is made an error, the release is its attribute `release`.

    Tables of a forest in whose trees you count stay in the certificate with their whole ε: their counts may have been looked at before
    these trees were taken. `trees_chosen_beforehand`: you state that taking them did not depend on the counts. Then each of these tables
    stays with the ε of its looks before the counts, and the certificate holds your statement.

    A budget pays once for the trees (of a plan, whatever its ε, or of a forest), an owner and a batch; without an owner, once for the trees
    and a batch. `again` pays anew.

    A table at a service that the forest has counted before is refused; `other_rows`: you state that it has other rows by now, and only
    those.
    """
    name, taken = TableName(batch, owner, disjoint, other_rows), plan.certificate.parts if isinstance(plan, Release) else []
    if not isinstance(trees_chosen_beforehand, bool) or (trees_chosen_beforehand and not isinstance(plan, Release)):
        raise PlanError(
            f"trees_chosen_beforehand: got {trees_chosen_beforehand!r}; expected True (you state it) or False with a forest, and "
            "False with a plan, as no rows are behind its trees. Nothing was spent."
        )
    if isinstance(plan, Release):
        check_random_trees(plan, "the forest")
    cost, given = cost_of(plan, epsilon), plan
    if isinstance(plan, Release):
        name.check_new(plan.certificate.parts)
        plan = PublicPlan.of(plan, cost, trees_chosen_beforehand)
    recipe, coins, key = recipe_for(plan), SYSTEM, None
    if isinstance(budget, Budget) and not is_private_table(X):
        counts = Counts(given, owner, batch)
        if not again:
            counts.check_unpaid(budget, owner_given=bool(owner))
        key = counts.key(budget, again)
    kept: list[Release] = []
    how: dict[str, Any] = {"n_jobs": threads_of(n_jobs), "progress": progress, "sampler": sampler, "coins": coins}
    try:
        with closing(open_rows(recipe, X, y, schema=plan.schema, **how)) as engine:
            name.check_other_table(taken, engine.counted_as)
            paid: dict[str, Any] = {"budget": budget, "key": key, "keep": lambda release, _: kept.append(release)}
            return count_rows(engine, plan, name, sampler=sampler, coins=coins, **paid)
    except HedgerowWarning as warning:  # a warning that was made an error comes after the counts are paid for
        if kept:
            warning.release = kept[0]  # type: ignore[attr-defined]
        raise


def count_rows(
    engine: Engine,
    plan: PublicPlan,
    name: TableName,
    *,
    before: Release | None = None,
    budget: Budget | None = None,
    sampler: str = "hedgerow",
    coins: Coins = SYSTEM,
    keep: Keep | None = None,
    agree: Callable[[], Agreement] | None = None,
    key: str | None = None,
) -> Release:
    """Count one table in the trees of the plan: charge, then look. `before` is the forest that the counts are added to.

    keep:  is given the release as soon as it is paid for, before a warning, which may have been made an error
    key:   of the budget's entry, where these counts are paid for once
    agree: meets the other owners, where several count together; the last thing before the charge, and nothing is spent if it fails
    """
    sampler_named(sampler, coins)
    if engine.codebook != plan.codebook:
        raise PlanError("count: the table is read by another schema than the plan's.")
    check_delta(plan.epsilon, plan.delta, sampler, plan.schema.rows)
    event = plan.event
    _ = engine.codebook.coders  # whatever could fail about the schema fails here
    paying = checked_budget(budget, plan.epsilon, plan.delta)
    if plan.n_counts > MAX_COUNTS:
        raise PlanError(
            f"plan: its trees have {plan.n_counts:,} counts, more than the {MAX_COUNTS:,} that are counted at once. Nothing was spent. "
            "Agree on a plan with smaller trees."
        )

    joint: Agreement | None = None

    def released(
        events: Sequence[Event], counts: Sequence[NDArray[np.int64]], sampler: str, id: str, secret: bool = coins.secret
    ) -> Release:
        part = part_of(
            events,
            requested=plan.epsilon,
            delta=plan.delta,
            sampler=sampler,
            secret=secret,
            unreviewed=plan.schema.unreviewed,
            public_rows=planned_rows(plan.schema.rows),
            person=plan.schema.person,
            rows_per_person=plan.schema.k,
            assumed=engine.assumed if joint is None else joint.assumed,
            source=engine.origin if joint is None else "",
            id=id,
            name=name,
            together=None if joint is None else joint.together.stating(events, plan.delta),
        )
        return plan.release_of(counts, noise_of(event) if joint is None else joint.together.noise(noise_of(event)), part)

    # What could go wrong after the rows are paid for goes wrong here: the same steps with no rows.
    nothing = [np.zeros((len(tree.leaves), plan.codebook.n_classes), dtype=np.int64) for tree in plan.trees]
    taken = () if before is None else before.certificate.parts
    name.check_other_table(taken, engine.counted_as)
    free = next(id for id in (f"trial {number}" for number in itertools.count()) if all(part.id != id for part in taken))
    trial = add_batch(before, released([event], nothing, "trial", free), name.disjoint)
    check_total(trial.forest.counts, most=2.0**61)
    del nothing, trial
    if agree is not None:
        paying.check_room(plan.epsilon, f"count {plan.algorithm}", plan.delta, Unit.of(plan.schema))  # the others would pay for nothing
        joint = agree()
        check_shared_noise(event, joint.secure_sum.shares)
    what = f"count {plan.algorithm}"
    if key is not None:  # whoever is told that they are paid for wants to know which
        what += (f" of {name.owner!r}" if name.owner else "") + (f", batch {name.batch!r}" if name.batch else "")
        what += "" if joint is None else f" together ({', '.join(joint.together.owners)})"
    reservation = reserved(engine, paying, plan.epsilon, what, plan.delta, key)  # charge, then look
    table = private_table(engine, reservation, coins, sampler, None if joint is None else joint.secure_sum)
    counts = table.ask(LeafCounts(plan.trees), plan.price)
    counted = released(reservation.events, counts, table.sampler, random_name(coins) if joint is None else joint.id, table._secret)
    release = add_batch(before, counted, name.disjoint)
    if keep is not None:
        keep(release, {})
    settled(counted, reservation)
    return release


def add_batch(before: Release | None, batch: Release, disjoint: bool) -> Release:
    """The forest with one batch more. `disjoint` states that no person is in two batches; it is not said of tables inside the forest."""
    if before is None:
        return batch
    counted = [part for part in before.certificate.parts if part.counted]
    return merge([before, batch], batches=True, disjoint=disjoint and all_disjoint(counted))


def cost_of(plan: PublicPlan | Release, epsilon: Any = None) -> Fraction:
    """The ε of one more count: what the plan fixes; with a forest, what is given, or what its tables were counted with.

    The file may come from somebody else, who would like to see more than you mean to show: a large ε must be given by yourself.
    """
    given = None if epsilon is None else exact_epsilon(epsilon)
    if isinstance(plan, PublicPlan):
        usual = plan.epsilon
        if given is not None and given != usual:
            raise PlanError(f"epsilon: the plan fixes ε = {text_of_fraction(usual)}; leave epsilon out, or agree on another plan.")
    else:
        found = {part.epsilon for part in plan.certificate.parts if part.counted}
        if given is None and len(found) != 1:
            raise PlanError(
                f"epsilon: the tables of the forest were counted with different ε ({', '.join(sorted(found)[:5])}). Give the one for the "
                "new rows."
            )
        usual = given if given is not None else Fraction(found.pop())
    if given is None and usual > LARGE:
        raise PlanError(
            f"epsilon: the file asks for ε = {text_of_fraction(usual)}, which protects your rows hardly at all. Nothing was spent. If you "
            "mean it, give the same ε yourself."
        )
    return usual
