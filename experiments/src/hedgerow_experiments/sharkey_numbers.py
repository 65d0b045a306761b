"""What the reports about Sharkey et al. (2008) share: names and axes, the numbers of each fold, differences and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan

from hedgerow_experiments.experiment import Found, Result, Verdict
from hedgerow_experiments.statistics import Mean, difference

C45, NAIVE_BAYES, RULE = "C4.5", "naive bayes", "conjunctive rule"
DECISION_TABLE, FOREST = "decision table", "random forest"
TITLES = {name: name for name in (RULE, DECISION_TABLE, FOREST)} | {C45: "decision tree (C4.5)", NAIVE_BAYES: "naive Bayes"}
SETS_5 = ("adult", "car", "nursery", "cmc")
SETS_6 = ("adult", "nursery")
SET_TITLES = {"adult": "Adult", "car": "Car", "nursery": "Nursery", "cmc": "CMC"}
OWNERS = (1, 2, 3, 4, 5, 10)
OWNERS_7 = (1, 5, 10)
REQUIREMENTS = tuple((c, ell) for ell in (2, 3, 4, 5) for c in (20, 15, 10, 5))  # weaker first, as on the figure's axis
MOST = 0.9  # of the cells: a claim about them is reproduced
FEWEST = 3  # folds, below which nothing is said
WHISKERS = "Whiskers are one standard error."


def folds_of_set(results: Iterable[Result], data: str) -> list[Found]:
    """What was found in each fold, in one order: lists that are made of it are pairs."""
    mine = [result for result in results if result.job["set"] == data]
    return [result.found for result in sorted(mine, key=lambda result: (result.job["iteration"], result.job["fold"]))]


def values(folds: Sequence[Found], model: str, method: str, owners: int, what: str = "accuracy") -> list[float]:
    """One number a fold; nothing where the method was not used."""
    if method == "BASIS":
        return [fold[what][model][method] for fold in folds]
    tables = [(fold[what] if what == "path match" else fold[what][model]).get(method, {}) for fold in folds]
    return [table[str(owners)] for table in tables if str(owners) in table]


def gap(folds: Sequence[Found], one: tuple[str, str, int], other: tuple[str, str, int]) -> Mean:
    """(model, method, owners) minus another, on the same folds."""
    return difference(values(folds, *one), values(folds, *other))


def better(mean: Mean) -> bool | None:
    """Above 0 by more than the noise; None where too little is stored."""
    return None if mean.n < FEWEST else mean.clear and mean.mean > 0


def worse(mean: Mean) -> bool | None:
    return None if mean.n < FEWEST else mean.clear and mean.mean < 0


def below(mean: Mean, limit: float) -> bool | None:
    return None if mean.n < FEWEST else mean.mean < limit


def judged(holds: Sequence[bool | None], opposite: Iterable[bool | None] = ()) -> Verdict:
    """Of one claim in several cells: reproduced in most and nowhere clearly the opposite, in some, in none; open with too few results."""
    if not holds or None in holds:
        return "open"
    most = sum(map(bool, holds)) >= MOST * len(holds) and not any(opposite)
    return "reproduced" if most else "partly" if any(holds) else "not"


def lacking(words: str, names: Sequence[str], holds: Sequence[bool | None], opposite: Sequence[bool | None] = ()) -> str:
    """Where a claim does not hold, and where clearly the opposite does; nothing while a cell has too few results."""
    if None in holds or all(holds):
        return ""
    against = [name for name, other in zip(names, opposite, strict=False) if other]
    rest = [name for name, hold in zip(names, holds, strict=True) if not hold and name not in against]
    told = [f"{words}: {', '.join(rest)}."] if rest else []
    return " ".join([*told, *([f"Clearly the opposite: {', '.join(against)}."] if against else [])])


def with_owners(sets: Iterable[str], owners: Sequence[int] = OWNERS) -> list[str]:
    """Names of cells, set by set."""
    return [f"{SET_TITLES[data]} with {number}" for data in sets for number in owners]


def counted(holds: Sequence[bool | None]) -> str:
    """In how many of the cells that have enough results."""
    return f"{sum(hold is True for hold in holds)} of {sum(hold is not None for hold in holds)} cells"


def spread(means: Sequence[Mean]) -> str:
    """The lowest and the highest of several differences."""
    known = [mean for mean in means if not isnan(mean.mean)]
    if not known:
        return "nothing"
    low, high = min(known, key=lambda mean: mean.mean), max(known, key=lambda mean: mean.mean)
    return low.signed if low == high else f"{low.signed} to {high.signed}"


def by_set(means: dict[str, list[Mean]]) -> str:
    return "; ".join(f"{SET_TITLES[data]} {spread(some)}" for data, some in means.items())


def text(mean: Mean) -> str:
    return "" if isnan(mean.mean) else str(mean)


def owner_heads(owners: Sequence[int] = OWNERS) -> list[str]:
    return [f"{number} owner{'s' if number > 1 else ''}" for number in owners]
