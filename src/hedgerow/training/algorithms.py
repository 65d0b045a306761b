"""The one table of algorithms: everything else that lists them reads it here. It imports none of them.

Those that keep ε have their steps in `training/private`, the others in `training/exact`: each is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hedgerow.errors import PlanError
from hedgerow.settings import DEFAULT_MAX_LEAVES

if TYPE_CHECKING:
    from hedgerow.training.method import ExactMethod, PrivateMethod

NO_PRIVACY = "exact counts, NO privacy"
OLDER_WAYS = "one such tree, the older ways"


@dataclass(frozen=True)
class Algorithm:
    """What is known of an algorithm before it is imported.

    name:       what users type
    title:      what its releases are called
    estimator:  its scikit-learn class, in the module of `hedgerow.estimators` that has the name of its steps
    words:      one line for a form; help: for the command line, where neighbours with the same words share them
    defaults:   its own settings, by the names of the estimator's parameters
    bins:       equal-width cells of a numeric attribute without declared edges, if nothing else is asked for
    private:    whether it keeps ε
    delta:      whether it can use a δ
    updates:    whether counts of several tables add up: batches, plans that owners share
    seeded:     whether its trees are drawn at random, so that a seed fixes them
    proposes:   whether it draws candidates at random, among which a private choice decides: a seed fixes them alone
    needs_rows: whether what it builds depends on the number of rows, unless a height is given
    audited:    settings that keep a run of the audit small
    at_values:  whether numbers may be cut between the values that rows have (bins="values"): never where ε is kept
    """

    name: str
    title: str
    estimator: str
    help: str
    words: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    bins: int = 5
    private: bool = True
    delta: bool = False
    updates: bool = False
    seeded: bool = False
    proposes: bool = False
    needs_rows: bool = False
    audited: Mapping[str, Any] = field(default_factory=dict)
    at_values: bool = False

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def settings(self) -> frozenset[str]:
        """Everything that a request may set, beside how it is worked on."""
        more = {"epsilon": self.private, "delta": self.delta, "random_state": self.seeded or self.proposes}
        return frozenset({*self.defaults, "bins", *(name for name, has in more.items() if has)})

    @cached_property
    def method(self) -> PrivateMethod:
        """How it plans and grows. Only an algorithm that keeps ε has one: exact counts are elsewhere."""
        if not self.private:
            raise PlanError(f"{self.name}: it needs exact counts, and keeps no ε.")
        found: PrivateMethod = import_module(f"hedgerow.training.private.{self.module}").METHOD
        return found

    @cached_property
    def exact_method(self) -> ExactMethod:
        if self.private:
            raise PlanError(f"{self.name}: it keeps ε, and is never given exact counts.")
        found: ExactMethod = import_module(f"hedgerow.training.exact.{self.module}").METHOD
        return found


_RDT = {"n_estimators": 10, "max_depth": None, "numeric_splits": "bins", "max_leaves": DEFAULT_MAX_LEAVES}

ALGORITHMS: dict[str, Algorithm] = {
    each.name: each
    for each in (
        Algorithm(
            "hedgerow", "Hedgerow forest", "HedgerowClassifier",
            "the most accurate, with nothing to tune: what each attribute says about the class, then boosted trees",
            "Hedgerow: the most accurate here, nothing to tune but ε",
            {"max_passes": None}, bins=250, delta=True, updates=True, proposes=True, needs_rows=True,
        ),
        Algorithm(
            "snr", "SNR forest", "SNRForestClassifier",
            "a forest that tunes itself from signal-to-noise ratios",
            "SNR forest: random trees, sized so that the signal stays above the noise",
            {"noise_rule": "paper", "max_leaves": DEFAULT_MAX_LEAVES, "stopping_rule": "ours"}, updates=True, seeded=True, needs_rows=True,
        ),
        Algorithm(
            "rdt", "Private-RDT", "PrivateRDTClassifier",
            "private random decision trees",
            "Random decision trees: how many and how deep can be set",
            _RDT, updates=True, seeded=True, needs_rows=True, audited={"n_estimators": 3, "max_depth": 2},
        ),
        Algorithm(
            "dpdf", "DPDF", "DPDFClassifier",
            "a few private trees that choose their questions, made to be read",
            "DPDF: one greedy tree, or a few, whose rules are easy to read",
            {"n_estimators": 1, "max_depth": 5, "min_rows": 100, "vote": "confidence", "sensitivity": "global"},
            audited={"max_depth": 3, "min_rows": 20},
        ),
        Algorithm(
            "diffpid3", "DiffPID3", "DiffPID3Classifier", OLDER_WAYS,
            "DiffPID3: one tree, a published baseline",
            {"max_depth": 5, "criterion": "gini", "most_rows": 1_000_000}, audited={"max_depth": 3},
        ),
        Algorithm(
            "private-id3", "Private ID3", "PrivateID3Classifier", OLDER_WAYS,
            "Private ID3: one tree from noisy tables, the simplest baseline",
            {"max_depth": None, "as_published": False}, audited={"max_depth": 2},
        ),
        Algorithm(
            "plain-rdt", "RDT", "RandomDecisionTreesClassifier", NO_PRIVACY,
            defaults={**_RDT, "prune": True}, private=False, seeded=True, needs_rows=True,
        ),
        Algorithm("id3", "ID3", "ID3Classifier", NO_PRIVACY, defaults={"max_depth": None, "as_published": False}, private=False),
        Algorithm(
            "local-tree", "local tree", "LocalTreeClassifier", NO_PRIVACY,
            defaults={"min_leaf": 2, "confidence": 0.25, "max_depth": None}, bins=32, private=False, at_values=True,
        ),
    )
}  # fmt: skip
PRIVATE = {name: each for name, each in ALGORITHMS.items() if each.private}
UPDATES = {name: each for name, each in ALGORITHMS.items() if each.updates}


def titled(title: str) -> Algorithm | None:
    """The algorithm whose releases are called so."""
    return next((each for each in ALGORITHMS.values() if each.title == title), None)


def help_text() -> str:
    """All of them for the help of an option; neighbours with the same words share them."""
    said: dict[str, list[str]] = {}
    for each in ALGORITHMS.values():
        said.setdefault(each.help, []).append(each.name)
    return " ".join(f"{', '.join(names)}: {words}." for words, names in said.items())
