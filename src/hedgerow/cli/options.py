"""Options that several commands share, and the estimator that they describe."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.schema.schema import Schema


class Algorithm(StrEnum):
    hedgerow = "hedgerow"
    snr = "snr"
    rdt = "rdt"
    dpdf = "dpdf"
    diffpid3 = "diffpid3"
    private_id3 = "private-id3"
    plain_rdt = "plain-rdt"
    id3 = "id3"
    local_tree = "local-tree"


class NoiseRule(StrEnum):
    paper = "paper"
    tight = "tight"


class VoteName(StrEnum):
    confidence = "confidence"
    majority = "majority"
    sum = "sum"


class CriterionName(StrEnum):
    gini = "gini"
    max = "max"
    information_gain = "information_gain"
    gini_half = "gini_half"


class SensitivityName(StrEnum):
    global_ = "global"
    local = "local"


SchemaFile = Annotated[Path, typer.Option("--schema", help="The reviewed schema (TOML).", show_default=False)]
OwnSchema = Annotated[
    Path | None, typer.Option("--schema", help="The reviewed schema (TOML); of rows at a service its own, if left out.", show_default=False)
]
AlgorithmName = Annotated[
    Algorithm,
    typer.Option(
        "--algorithm",
        help="hedgerow: the most accurate, with nothing to tune: what every attribute says about the class, added up. snr: a "
        "forest that tunes itself from signal-to-noise ratios. rdt: private random decision trees. dpdf: a few private trees that "
        "choose their splits, made to be read. diffpid3, private-id3: one such tree, the older ways. plain-rdt, id3, "
        "local-tree: exact counts, NO privacy.",
    ),
]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help="The exact privacy loss, such as 1, 0.5 or 1/3.", show_default=False)
]
Delta = Annotated[
    str | None,
    typer.Option(
        "--delta",
        help="hedgerow: a small chance that ε may not hold, such as 1e-6: it buys accuracy where there are many attributes.  "
        "[default: 0, pure ε]",
        show_default=False,
    ),
]
BudgetPath = Annotated[
    Path | None, typer.Option("--budget", help="The budget file that pays (see `hedgerow budget`).", show_default=False)
]
Trees = Annotated[
    int | None,
    typer.Option("--trees", help="rdt, dpdf: number of trees.  [default: 10; dpdf 1]", show_default=False),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        help="All but hedgerow and snr. rdt: height of the trees [default: the paper's rule]; dpdf, diffpid3: levels, the root included "
        "[default: 5]; id3: attributes split on a path [default: all]; local-tree: splits on a path [default: no "
        "limit].",
        show_default=False,
    ),
]
MinRows = Annotated[
    int | None,
    typer.Option(
        "--min-rows", help="dpdf: split a node only if it has so many rows (noisy).  [default: 100]", show_default=False
    ),
]
Vote = Annotated[
    VoteName | None,
    typer.Option("--vote", help="dpdf: how several trees decide.  [default: confidence]", show_default=False),
]
Criterion = Annotated[
    CriterionName | None,
    typer.Option("--criterion", help="diffpid3: the score of a split.  [default: gini]", show_default=False),
]
Sensitivity = Annotated[
    SensitivityName | None,
    typer.Option(
        "--sensitivity",
        help="dpdf: local is the published choice of splits, NOT PROVEN: no ε is claimed.  [default: global]",
        show_default=False,
    ),
]
Bins = Annotated[
    int | None,
    typer.Option(
        "--bins",
        help="Equal-width cells of a numeric attribute without declared edges.  [default: 5; hedgerow and local-tree 32]",
        show_default=False,
    ),
]
Thresholds = Annotated[
    bool, typer.Option("--thresholds", help="rdt: split a number at a random threshold, not by its cells.")
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
    typer.Option("--seed", help="snr, rdt: fixes the public structure of the trees. Noise cannot be seeded.", show_default=False),
]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Threads.  [default: all processors]", show_default=False)]


NOT_PROVEN = (
    "--sensitivity local chooses splits as the paper does, with a local sensitivity that follows from noisy counts. That the "
    "stated ε holds then is not proven: the budget is charged, but the forest claims no guarantee"
)


class ForestOptions:
    """What `plan` and `fit` have in common. `settings` have the estimators' names; None is an option that was not given."""

    def __init__(self, algorithm: Algorithm, epsilon: str | None, bins: int | None, **settings: Any) -> None:
        self.algorithm = algorithm
        self.settings = {name: value for name, value in {"bins": bins, **settings}.items() if value is not None}
        if epsilon is not None:
            self.settings["epsilon"] = epsilon

    @property
    def private(self) -> bool:
        return self.algorithm not in (Algorithm.plain_rdt, Algorithm.id3, Algorithm.local_tree)

    @property
    def seeded(self) -> bool:
        """Whether the trees are drawn at random, so that a seed fixes them."""
        return self.algorithm in (Algorithm.snr, Algorithm.rdt, Algorithm.plain_rdt)

    @property
    def depends_on_rows(self) -> bool:
        """Whether what would be built depends on the number of rows: a plan then needs one."""
        return self.algorithm in (Algorithm.hedgerow, Algorithm.snr) or (self.seeded and "max_depth" not in self.settings)

    @property
    def proven(self) -> bool:
        return self.settings.get("sensitivity") != SensitivityName.local

    def estimator(self, schema: Schema, **more: Any) -> Any:
        """The scikit-learn estimator; an option that its algorithm does not have is refused, not ignored."""
        from hedgerow.estimators.names import estimator_named

        estimator = estimator_named(self.algorithm)()
        known = estimator.get_params().keys() - (set() if self.seeded else {"random_state"})
        strange = [option_of(name) for name in self.settings if name not in known]
        if strange == ["--delta"]:
            raise PlanError(
                f"--delta: --algorithm {self.algorithm} has no such setting: it has no δ. Leave it out, or use --algorithm hedgerow."
            )
        if strange:
            raise PlanError(f"{', '.join(strange)}: --algorithm {self.algorithm} has no such setting. Leave it out.")
        if self.settings.get("random_state", 0) < 0:
            raise PlanError(f"--seed: got {self.settings['random_state']}; expected a whole number of at least 0.")
        settings = {name: str(value) if isinstance(value, StrEnum) else value for name, value in self.settings.items()}
        return estimator.set_params(schema=schema, **settings, **more)


def option_of(setting: str) -> str:
    """What the command line calls a setting of an estimator."""
    words = {
        "n_estimators": "trees", "max_depth": "depth", "numeric_splits": "thresholds", "random_state": "seed",
    }  # fmt: skip
    return "--" + words.get(setting, setting.replace("_", "-"))


def threads(jobs: int | None) -> int:
    from joblib import cpu_count

    if jobs is None:
        return int(cpu_count())
    if jobs < 1:
        raise PlanError(f"--jobs: got {jobs}; expected a whole number of at least 1.")
    return jobs
