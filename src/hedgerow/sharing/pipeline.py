"""Model sharing from end to end (Sharkey et al. 2008, Figure 1): owners learn, prune and publish trees or rule sets; a miner learns from
pseudo-data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.advice import why_empty
from hedgerow.sharing.anonymous_release import anonymous_release
from hedgerow.sharing.generalise import generalise
from hedgerow.sharing.global_model import global_model
from hedgerow.sharing.prune import BEST, NEEDED, REATTACH, Encoded, Pruned, prune
from hedgerow.sharing.pseudo.decoding import values_array
from hedgerow.sharing.pseudo.tables import PseudoData, Shared, pseudo_data
from hedgerow.sharing.rules.prune import PrunedRules, prune_rules
from hedgerow.sharing.rules.rule_set import RuleSet
from hedgerow.sharing.taxonomy import with_numeric_taxonomies
from hedgerow.training.fit import fit
from hedgerow.training.recipe import Recipe

TREE, RULES = "tree", "rules"
NO_RULE = "No rule with a condition satisfies it, not even merged with others. Ask for a smaller k or l, or a larger c."


@dataclass(frozen=True, eq=False)
class Published:
    """What one owner has, and what it shares of it.

    local:  its tree; None of an owner who has a rule set and no table
    shared: None for the empty tree or rule set: nothing is shared, and `why` says what to change
    """

    local: Release | None
    pruned: Pruned | PrunedRules | None
    shared: Shared | None
    why: str = ""

    @property
    def steps(self) -> int:
        """How many merges pruning made."""
        if self.pruned is None:
            return 0
        return len(self.pruned.cuts if isinstance(self.pruned, Pruned) else self.pruned.steps)

    @property
    def groups(self) -> int:
        """How many paths or rules are shared."""
        if isinstance(self.shared, RuleSet):
            return len(self.shared)
        return 0 if self.shared is None else len(self.shared.forest.trees[0].leaves)


def publish(
    X: Any,
    y: Any,
    schema: Schema,
    requirement: Requirement | None,
    *,
    model: str = TREE,
    siblings: str = BEST,
    hits_only: bool = False,
    n_jobs: int = 1,
    **settings: Any,
) -> Published:
    """An owner's part: learn a tree on its own rows and prune it. Without a requirement it is shared as it is, and claims nothing.

    model: "tree", or "rules": the tree's paths, pruned and shared as a rule set

    Where the schema limits the rows of a person, the tree does not count all rows: branches are merged as needed then.
    """
    if model not in (TREE, RULES):
        raise PlanError(f"model: got {model!r}; expected {TREE!r} or {RULES!r}.")
    local = fit(Recipe.of("local-tree", **settings), X, y, schema=schema, n_jobs=n_jobs)
    if model == RULES:
        return publish_rules(RuleSet.from_release(local), requirement, hits_only=hits_only, local=local)
    if requirement is None:
        return Published(local, None, local)
    if siblings == BEST and schema.person is not None:
        siblings = NEEDED
    rows = encoded(local.codebook, X, y) if siblings in (REATTACH, BEST) else None
    pruned = prune(local.forest, requirement, siblings=siblings, hits_only=hits_only, rows=rows)
    if pruned.empty:
        return Published(local, pruned, None, why_empty(local.forest, requirement, siblings, hits_only, rows))
    return Published(local, pruned, anonymous_release(pruned, local.parameters.get("bins")))


def publish_rules(rules: RuleSet, requirement: Requirement | None, *, hits_only: bool = False, local: Release | None = None) -> Published:
    """The part of an owner who has a rule set: prune it. Without a requirement it is shared as it is."""
    if requirement is None:
        return Published(local, None, rules)
    paths = replace(rules.paths, counts=None) if hits_only else rules.paths
    kept = prune_rules(paths, requirement, at_values=rules.at_values)
    return Published(local, kept, None, NO_RULE) if kept.empty else Published(local, kept, kept.rule_set)


def encoded(codebook: Codebook, X: Any, y: Any) -> Encoded:
    """Codes and classes of an owner's rows."""
    return codebook.encode(X), codebook.encode_classes(y)


def mine(
    shared: Sequence[Shared | None], model: Any = "decision tree", *, rows: int | None = None, seed: int = 0, **recipe: Any
) -> tuple[Any, PseudoData]:
    """The miner's part: pseudo-data from the owners' trees or rule sets, and a global model that is learnt from it."""
    given = [release for release in shared if release is not None]
    if not given:
        raise PlanError(
            "share: what every owner would share is empty: there is nothing to learn from. Ask for less: a smaller k or l, or a larger c; "
            "`hedgerow anonymity prune --table` says of one tree what would be enough."
        )
    made = pseudo_data(given, rows, seed=seed, **recipe)
    learner = global_model(model, made.schema, random_state=seed)
    return learner.fit(made.columns, made.target), made


def generalised_model(
    learn: Callable[[Schema, Any, Any], Any], X: Any, y: Any, schema: Schema, requirement: Requirement, suppression: float = 0.0
) -> Callable[[Any], NDArray[Any]] | None:
    """LD, the baseline: what is learnt from a table that is generalised to the requirement, as a prediction for rows generalised alike.

    `learn(schema, columns, target)` fits a model. None: no generalisation satisfies the requirement. Numbers are generalised along their
    taxonomies, from the cells of the finest level.
    """
    codebook = Codebook(with_numeric_taxonomies(schema))
    found = generalise(codebook.encode(X), codebook.encode_classes(y), codebook, requirement, suppression)
    if found.impossible:
        return None
    wide = found.codebook
    classes = values_array(list(schema.target.classes))  # as they are declared: labels of another type are refused

    def columns(codes: Any) -> dict[str, Any]:
        names = [np.array([*labels, ""], dtype=object) for labels in wide.labels]  # "": a value that has no branch
        return {name: names[j][np.minimum(codes[:, j], len(names[j]) - 1)] for j, name in enumerate(wide.schema.names)}

    model = learn(wide.schema, columns(found.codes), classes[found.labels])
    return lambda rows: np.asarray(model.predict(columns(found.apply(codebook.encode(rows)))))


def accuracy(model: Any, X: Any, y: Any) -> float:
    """The share of rows that are classified rightly: exact, so only for rows that may be looked at."""
    return float(np.mean(np.asarray(model.predict(X)).astype(str) == np.asarray(y).astype(str)))
