"""Options that several commands share, and the estimator that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.schema import Schema


class Algorithm(StrEnum):
    rdt = "rdt"
    snr = "snr"
    plain_rdt = "plain-rdt"


class NoiseRule(StrEnum):
    paper = "paper"
    tight = "tight"


SchemaFile = Annotated[Path, typer.Option("--schema", help="The reviewed schema (TOML).", show_default=False)]
AlgorithmName = Annotated[
    Algorithm,
    typer.Option(
        "--algorithm",
        help="snr: a private forest that tunes itself from signal-to-noise ratios. rdt: private random decision trees. "
        "plain-rdt: exact counts, NO privacy.",
    ),
]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help="The exact privacy loss, such as 1, 0.5 or 1/3.", show_default=False)
]
BudgetPath = Annotated[
    Path | None, typer.Option("--budget", help="The budget file that pays (see `hedgerow budget`).", show_default=False)
]
Trees = Annotated[int | None, typer.Option("--trees", help="rdt: number of trees.  [default: 10]", show_default=False)]
Depth = Annotated[
    int | None,
    typer.Option("--depth", help="rdt: height of the trees.  [default: the paper's rule]", show_default=False),
]
Bins = Annotated[int, typer.Option("--bins", help="Equal-width cells of a numeric attribute without declared edges.")]
Thresholds = Annotated[
    bool, typer.Option("--thresholds", help="rdt: ask a number below or above a random threshold, not for its cell.")
]
NoiseRuleName = Annotated[
    NoiseRule | None,
    typer.Option("--noise-rule", help="snr: how noise is estimated.  [default: paper]", show_default=False),
]
MaxLeaves = Annotated[
    int | None,
    typer.Option("--max-leaves", help="Refuse a forest with more leaves.  [default: 2000000]", show_default=False),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Fixes the public structure of the trees. Noise cannot be seeded.", show_default=False),
]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Threads.  [default: all processors]", show_default=False)]


@dataclass(frozen=True)
class ForestOptions:
    """What `plan` and `fit` have in common."""

    algorithm: Algorithm
    epsilon: str | None
    trees: int | None
    depth: int | None
    bins: int
    thresholds: bool
    noise_rule: NoiseRule | None
    max_leaves: int | None
    seed: int | None

    @property
    def private(self) -> bool:
        return self.algorithm is not Algorithm.plain_rdt

    def estimator(self, schema: Schema, **more: Any) -> Any:
        """The scikit-learn estimator; an option that its algorithm does not have is refused, not ignored."""
        from hedgerow.estimators.plain_rdt import RandomDecisionTreesClassifier
        from hedgerow.estimators.private_rdt import PrivateRDTClassifier
        from hedgerow.estimators.snr import SNRForestClassifier

        common: dict[str, Any] = {"schema": schema, "bins": self.bins, "random_state": self.seed, **more}
        if self.seed is not None and self.seed < 0:
            raise PlanError(f"--seed: got {self.seed}; expected a whole number of at least 0.")
        if self.max_leaves is not None:
            common["max_leaves"] = self.max_leaves
        if self.algorithm is Algorithm.snr:
            self._refuse({"--trees": self.trees, "--depth": self.depth, "--thresholds": self.thresholds or None})
            return SNRForestClassifier(epsilon=self.epsilon, noise_rule=self.noise_rule or "paper", **common)
        self._refuse({"--noise-rule": self.noise_rule})
        common["numeric_splits"] = "thresholds" if self.thresholds else "bins"
        common["max_depth"] = self.depth
        if self.trees is not None:
            common["n_estimators"] = self.trees
        if self.private:
            return PrivateRDTClassifier(epsilon=self.epsilon, **common)
        self._refuse({"--epsilon": self.epsilon})
        return RandomDecisionTreesClassifier(**common)

    def _refuse(self, options: dict[str, Any]) -> None:
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise PlanError(f"{', '.join(given)}: --algorithm {self.algorithm} has no such setting. Leave it out.")


def threads(jobs: int | None) -> int:
    from joblib import cpu_count

    if jobs is None:
        return int(cpu_count())
    if jobs < 1:
        raise PlanError(f"--jobs: got {jobs}; expected a whole number of at least 1.")
    return jobs
