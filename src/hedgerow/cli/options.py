"""Options that several commands share, and the recipe that they describe."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.accounting.meaning import short
from hedgerow.errors import PlanError
from hedgerow.training.algorithms import ALGORITHMS, help_text

if TYPE_CHECKING:
    from hedgerow.training.recipe import Recipe


class Algorithm(StrEnum):
    """Those of the table of algorithms."""

    _ignore_ = ["each"]  # noqa: RUF012 (a word of `enum`)
    for each in ALGORITHMS.values():
        vars()[each.module] = each.name


FIRST = Algorithm("hedgerow")


class NoiseRule(StrEnum):
    paper = "paper"
    tight = "tight"


class StoppingRule(StrEnum):
    ours = "ours"
    literal = "literal"


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


COUNTED_ROWS = "Where the schema names persons: how many rows are counted, at most rows_per_person of each."
SchemaFile = Annotated[Path, typer.Option("--schema", help="The reviewed schema (TOML).", show_default=False)]
OwnSchema = Annotated[
    Path | None, typer.Option("--schema", help="The reviewed schema (TOML); of rows at a service its own, if left out.", show_default=False)
]
AlgorithmName = Annotated[
    Algorithm,
    typer.Option(
        "--algorithm",
        help=help_text(),
    ),
]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help=f"The exact privacy loss, such as 1, 0.5 or 1/3. Protection: {short()}.", show_default=False)
]
Delta = Annotated[
    str | None,
    typer.Option(
        "--delta",
        help="hedgerow: a small chance that ε may not hold, such as 1e-6: it buys much accuracy on most tables; where rows times ε are "
        "below about 1,000, pure ε may be as good.  [default: 0, pure ε]",
        show_default=False,
    ),
]
BudgetPath = Annotated[Path | None, typer.Option("--budget", help="The budget file that pays (see `hedgerow budget`).", show_default=False)]
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
    typer.Option("--min-rows", help="dpdf: split a node only if it has so many rows (noisy).  [default: 100]", show_default=False),
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
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="private-id3, id3: to the letter of the paper, with leaves of Failure. private-id3: NOT PROVEN, more than ε is charged, "
        "and no ε is claimed.",
    ),
]


def bins_of(text: Any) -> Any:
    """A number of cells, or the word for cells between values: whether an algorithm knows it is checked with its recipe."""
    return int(text) if str(text).isascii() and str(text).lstrip("-").isdecimal() else text


Bins = Annotated[
    Any,
    typer.Option(
        "--bins",
        parser=bins_of,
        metavar="NUMBER|values",
        help="Cells of equal width of a numeric attribute without declared edges.  [default: 5; hedgerow 250, local-tree 32] "
        "local-tree: `values` cuts between the values that the rows have; the tree then lists the thresholds that it uses.",
        show_default=False,
    ),
]
MinLeaf = Annotated[
    int | None,
    typer.Option("--min-leaf", help="local-tree: at least two branches of a question have so many rows.  [default: 2]", show_default=False),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        help="local-tree: the smaller, the more is pruned, as in C4.5: above 0 and at most 0.5, or 1 to prune nothing.  [default: 0.25]",
        show_default=False,
    ),
]
Unpruned = Annotated[bool, typer.Option("--unpruned", help="local-tree: prune nothing; the same as --confidence 1.")]
Thresholds = Annotated[bool, typer.Option("--thresholds", help="rdt: split a number at a random threshold, not by its cells.")]
NoiseRuleName = Annotated[
    NoiseRule | None,
    typer.Option("--noise-rule", help="snr: how noise is estimated.  [default: paper]", show_default=False),
]
StoppingRuleName = Annotated[
    StoppingRule | None,
    typer.Option(
        "--stopping-rule",
        help="snr: literal asks one question more, until a node's own support is below the noise.  [default: ours]",
        show_default=False,
    ),
]
MaxLeaves = Annotated[
    int | None,
    typer.Option("--max-leaves", help="Refuse a forest with more leaves.  [default: 2000000]", show_default=False),
]
MaxPasses = Annotated[
    int | None,
    typer.Option(
        "--max-passes",
        help="hedgerow: so many passes over the rows at most, with more trees in each.  [default: no limit]",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", help="hedgerow, snr, rdt: fixes the trees that are drawn or proposed. Noise cannot be seeded.", show_default=False
    ),
]
Sampler = Annotated[str, typer.Option("--sampler", help="hedgerow or opendp: both draw exact noise.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output file.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Threads.  [default: all processors]", show_default=False)]


NOT_PROVEN = {
    "--sensitivity local": "--sensitivity local chooses splits as the paper does, with a local sensitivity that follows from noisy counts. "
    "That the stated ε holds then is not proven: the budget is charged, but the forest claims no guarantee",
    "--as-published": "--as-published divides ε by the number of queries that the paper states, and it asks more than those. "
    "That the stated ε holds then is not proven: more than ε is charged, what the queries cost, and the forest claims no guarantee",
}


class ForestOptions:
    """What `plan` and `fit` have in common. `settings` have the recipe's names; None is an option that was not given."""

    def __init__(self, algorithm: Algorithm, epsilon: str | None, bins: int | str | None, **settings: Any) -> None:
        self.algorithm = algorithm
        self.settings = {name: value for name, value in {"bins": bins, **settings}.items() if value is not None}
        if epsilon is not None:
            self.settings["epsilon"] = epsilon

        self.known = ALGORITHMS[algorithm]

    @property
    def private(self) -> bool:
        return self.known.private

    @property
    def depends_on_rows(self) -> bool:
        """Whether what would be built depends on the number of rows: a plan then needs one."""
        return self.known.needs_rows and "max_depth" not in self.settings

    @property
    def unproven(self) -> str | None:
        """The option by which no ε can be claimed, if there is one: a key of `NOT_PROVEN`."""
        if self.settings.get("sensitivity") == SensitivityName.local:
            return "--sensitivity local"
        return "--as-published" if self.private and self.settings.get("as_published") else None

    def recipe(self) -> Recipe:
        """What is to be trained; an option that the algorithm does not have is refused, not ignored."""
        from hedgerow.training.recipe import Recipe

        strange = [option_of(name) for name in self.settings if name not in self.known.settings]
        if strange == ["--delta"]:
            raise PlanError(
                f"--delta: --algorithm {self.algorithm} has no such setting: it has no δ. Leave it out, or use --algorithm hedgerow."
            )
        if strange:
            raise PlanError(f"{', '.join(strange)}: --algorithm {self.algorithm} has no such setting. Leave it out.")
        if self.settings.get("random_state", 0) < 0:
            raise PlanError(f"--seed: got {self.settings['random_state']}; expected a whole number of at least 0.")
        return Recipe.of(self.algorithm, **self.plain)

    @property
    def plain(self) -> dict[str, Any]:
        """The settings with words as text, as recipes and services take them."""
        return {name: str(value) if isinstance(value, StrEnum) else value for name, value in self.settings.items()}


def option_of(setting: str) -> str:
    """What the command line calls a setting of a recipe."""
    words = {
        "n_estimators": "trees", "max_depth": "depth", "numeric_splits": "thresholds", "random_state": "seed",
    }  # fmt: skip
    return "--" + words.get(setting, setting.replace("_", "-"))


def confidence_of(confidence: float | None, unpruned: bool) -> float | None:
    """The setting that two options speak of."""
    if unpruned and confidence not in (None, 1):
        raise PlanError(f"--unpruned: it prunes nothing, but --confidence {confidence:g} does. Leave one of them out.")
    return 1.0 if unpruned else confidence


def threads(jobs: int | None) -> int:
    from hedgerow.parallel import processors

    if jobs is None:
        return processors()
    if jobs < 1:
        raise PlanError(f"--jobs: got {jobs}; expected a whole number of at least 1.")
    return jobs
