"""Noisy counts in the trees of a plan that several owners share: refused from public facts alone, or made as `hedgerow count` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.curator.http.amounts import EXPECTED, amount_of
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.party import ServiceParty
from hedgerow.curator.ledger.registry import Dataset
from hedgerow.errors import HedgerowWarning, PlanError, ReleaseError, SchemaError
from hedgerow.release.parts import TableName
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.schema.toml import same_columns

NOTHING = "Nothing was spent."


def checked_count(content: bytes, dataset: Dataset, epsilon: Any, limits: Limits) -> PublicPlan:
    """The plan in a document, refused where it cannot be counted here, is too large, or does not follow from its own settings.

    A plan comes from the analyst, and the release will say that no table has shaped its trees: so they are built again.
    """
    from hedgerow.training.counting import cost_of  # here: training takes a while to be imported, and a start should not
    from hedgerow.training.shared_plans import rebuild

    plan = _read(content)
    if not same_columns(plan.schema, dataset.schema):  # rows: what was planned for, all owners together
        raise PlanError(f"plan: its schema is not that of the dataset; expected the same columns, values and bounds. {NOTHING}")
    _check_amount(plan)
    cost_of(plan, epsilon)
    sizes = {
        "trees": (len(plan.trees), limits.trees), "bins": (plan.codebook.bins, limits.bins),
        "leaves": (sum(len(tree.leaves) for tree in plan.trees), limits.leaves),
        "levels": (max(tree.height for tree in plan.trees), limits.depth),
    }  # fmt: skip
    for what, (found, most) in sizes.items():
        if found > most:
            raise PlanError(f"plan: it has {found} {what}; this service takes at most {most}. {NOTHING}")
    try:
        same = rebuild(plan)
    except (ReleaseError, SchemaError) as error:
        raise PlanError(f"plan: it cannot be built again: {error} {NOTHING}") from None
    if not same:
        here = f"numpy {np.__version__}"
        drawn = f" It was drawn with {plan.drawn_with}, here is {here}." if plan.drawn_with not in ("", here) else ""
        raise PlanError(
            f"plan: its trees do not follow from its schema, settings and seed, so that they might hold data.{drawn} Make it with "
            f"`hedgerow plan --save`. {NOTHING}"
        )
    return plan


def counted(content: bytes, place: Any, epsilon: Any, name: TableName, **how: Any) -> Release:
    """The release. Whose rows they are is the service's to say; that nobody is in another table it does not say, and whoever merges may."""
    from hedgerow.training.counting import count

    named: dict[str, Any] = {"owner": name.owner, "batch": name.batch, "again": True}  # that it is paid once is the ledger's to say
    return _paid(lambda: count(_read(content), place, epsilon=epsilon, **named, **how))


def counted_together(content: bytes, place: Any, epsilon: Any, party: ServiceParty, request: str, seconds: float, **how: Any) -> Release:
    """The release of all owners. Its owner has stated, at the start of the service, that nobody is in another's table, and, where
    tolerated is 0, that no owner keeps its share of the noise.
    """
    from hedgerow.multiparty.run import together

    stated = {"disjoint": True, "trust_owners": True}
    who: dict[str, Any] = {"parties": party.parties, "party": party.number, "key": party.key, "request": request, **stated}
    return _paid(lambda: together(_read(content), place, epsilon=epsilon, wait=seconds, timeout=seconds, **who, **how))


def _paid(work: Callable[[], Release]) -> Release:
    try:
        return work()
    except HedgerowWarning as warning:  # made an error: by then it is paid for
        release: Release | None = getattr(warning, "release", None)
        if release is None:
            raise
        return release


def _read(content: bytes) -> PublicPlan:
    try:
        return PublicPlan.from_json(content)
    except ReleaseError as error:
        raise PlanError(f"{error} {NOTHING}") from None


def _check_amount(plan: PublicPlan) -> None:
    try:
        amount_of(text_of_fraction(plan.epsilon))
    except ValueError:
        raise PlanError(f"plan: its ε = {text_of_fraction(plan.epsilon)}; expected {EXPECTED}. {NOTHING}") from None
    _ = plan.event  # refuses what cannot be drawn
