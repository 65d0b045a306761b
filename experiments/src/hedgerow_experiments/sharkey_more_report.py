"""Sharkey et al. (2008), other global models and other sets, from stored results: tables, a chart, and the claims with our verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import StatisticsError, correlation, fmean

from hedgerow_experiments.charts import Lines, Panel, Point, Series
from hedgerow_experiments.document import Block, Figure, Table
from hedgerow_experiments.experiment import Claim, Found, Result
from hedgerow_experiments.sharkey_figure_7 import known, pairs, pruned_text
from hedgerow_experiments.sharkey_numbers import (
    C45,
    DECISION_TABLE,
    FEWEST,
    FOREST,
    NAIVE_BAYES,
    OWNERS_7,
    REQUIREMENTS,
    SET_TITLES,
    TITLES,
    WHISKERS,
    better,
    by_set,
    counted,
    folds_of_set,
    gap,
    judged,
    lacking,
    owner_heads,
    spread,
    text,
    values,
    worse,
)
from hedgerow_experiments.sharkey_report import CLOSE, MADE
from hedgerow_experiments.statistics import Mean, cross_validated_mean, difference

OTHERS, FEW_OWNERS = (DECISION_TABLE, FOREST), (1, 10)
MODELS_7, MEASURES = (C45, NAIVE_BAYES), ("accuracy", "class match")
SETS_6 = ("car", "nursery", "cmc")
SETS_7 = ("nursery", "car", "cmc", "adult")
HITS, TABLE = "hits", "table"
WAYS = {HITS: "by hits", TABLE: "with the table"}
MOST_ELL = {"nursery": 3, "car": 4, "cmc": 3, "adult": 2}  # the number of classes; of Nursery, whose five are in Figure 7, less
ENDS = {"nursery": (20, 5)}  # c, where not all were run
ELL_COMPARED = 3  # PPGEN and LD are compared on average from (5, 2) to (20, 3)
ALIKE = 0.8  # a correlation above which class match is said to behave as accuracy does
Cell = tuple[int, int]


def requirements_of(data: str) -> list[Cell]:
    return [(c, ell) for c, ell in REQUIREMENTS if ell <= MOST_ELL[data] and c in ENDS.get(data, (c,))]


# ------------------------------------------------------------ Figure 6, other models


def blocks_6(results: Sequence[Result]) -> list[Block]:
    rows = []
    for model, data, method in product(OTHERS, SETS_6, MADE):
        folds = folds_of_set(results, data)
        cells = [text(cross_validated_mean(values(folds, model, method, m))) for m in FEW_OWNERS]
        if any(cells):
            rows.append([TITLES[model], SET_TITLES[data], method, text(cross_validated_mean(values(folds, model, "BASIS", 0))), *cells])
    return [Table(["accuracy of", "data", "from", "BASIS", *owner_heads(FEW_OWNERS)], rows)] if rows else []


def claims_6(results: Sequence[Result]) -> list[Claim]:
    ways = list(product(OTHERS, MADE, FEW_OWNERS))
    folds = {data: folds_of_set(results, data) for data in SETS_6}
    means = {data: [gap(folds[data], (model, how, m), (model, "BASIS", m)) for model, how, m in ways] for data in SETS_6}
    cells = [mean for some in means.values() for mean in some]
    holds = [None if mean.n < FEWEST else mean.mean >= -CLOSE for mean in cells]
    opposite = [worse(Mean(mean.mean + CLOSE, mean.error, mean.n)) for mean in cells]
    names = [f"{SET_TITLES[data]}, {TITLES[model]}, {how} with {m}" for data in SETS_6 for model, how, m in ways]
    words = (
        "Decision tables and random forests, on Nursery and other sets, give results like those on Nursery in Figure 6 (our measure: "
        "within 5 points of BASIS from PGEN and from BASEGEN, as its three models are there)."
    )
    ours = f"minus BASIS: {by_set(means)}; within 5 points in {counted(holds)}"
    why = lacking("Further away, by owners", names, holds, opposite)
    if why:
        why += " With ten owners each tree sees a tenth of the rows; random rows of CMC are far from real ones."
    return [Claim(words, ours, judged(holds, opposite), why)]


# ------------------------------------------------------------ Figure 7, other sets


def values_7(folds: Sequence[Found], what: str, model: str, cell: Cell, way: str, owners: int = 0) -> list[float | None]:
    """One number a fold, None where nothing was published; `way`: hits, table or LD."""
    found = [fold["cells"][f"{cell[0]}, {cell[1]}"][way][what][model] for fold in folds]
    return found if way == "LD" else [one[str(owners)] for one in found]


def means_of_folds(folds: Sequence[Found], data: str, way: str, numbers: Sequence[int] = OWNERS_7) -> list[float]:
    """For each fold the mean accuracy from (5, 2) to (20, 3), over models and owners; nothing published counts as the largest class."""
    cells = [cell for cell in requirements_of(data) if cell[1] <= ELL_COMPARED]
    owners = (0,) if way == "LD" else numbers
    lists = [values_7(folds, "accuracy", model, cell, way, m) for model, cell, m in product(MODELS_7, cells, owners)]
    levels = [fold["largest class"] for fold in folds]
    return [
        fmean(level if value is None else value for value in each) for level, each in zip(levels, zip(*lists, strict=True), strict=True)
    ]  # fmt: skip


def blocks_7(results: Sequence[Result]) -> list[Block]:
    if not results:
        return []
    folds = {data: found for data in SETS_7 if (found := folds_of_set(results, data))}
    blocks: list[Block] = [_figure(folds), _overview(folds)]
    for what, model in (("accuracy", C45), ("accuracy", NAIVE_BAYES), ("class match", C45)):
        heads = [f"{TITLES[model]}: {what}", "(c, ℓ)", "LD"]
        heads += [f"{name}, {words}" for words in WAYS.values() for name in owner_heads(OWNERS_7)]
        rows = [
            [
                SET_TITLES[data],
                f"({cell[0]}, {cell[1]})",
                pruned_text(values_7(some, what, model, cell, "LD")),
                *(pruned_text(values_7(some, what, model, cell, way, m)) for way in WAYS for m in OWNERS_7),
            ]
            for data, some in folds.items()
            for cell in requirements_of(data)
        ]
        blocks.append(Table(heads, rows))
    return blocks


def _figure(folds: dict[str, list[Found]]) -> Figure:
    drawn = []
    for data, (way, words) in product(folds, WAYS.items()):
        lines = [("LD", "LD", 0), *((f"PPGEN, {name}", way, m) for m, name in zip(OWNERS_7, owner_heads(OWNERS_7), strict=True))]
        series = []
        for name, how, m in lines:
            cells = requirements_of(data)
            means = [cross_validated_mean(known(values_7(folds[data], "accuracy", C45, cell, how, m))) for cell in cells]
            places = [REQUIREMENTS.index(cell) for cell in cells]
            series.append(Series(name, [Point(x, mean.mean, mean.error) for x, mean in zip(places, means, strict=True) if mean.n]))
        largest = fmean(fold["largest class"] for fold in folds[data])
        series.append(Series("largest class", [Point(REQUIREMENTS.index(cell), largest) for cell in requirements_of(data)], dashed=True))
        drawn.append(Panel(f"{SET_TITLES[data]}, {words}", series))
    ticks = [(place, f"{c}, {ell}") for place, (c, ell) in enumerate(REQUIREMENTS) if ell <= max(MOST_ELL.values())]
    title = "Pruned trees against a generalised table on four sets"
    picture = Lines(title, drawn, "requirement (c, ℓ), stronger to the right", "accuracy", ticks, columns=2)
    caption = (
        f"{title}, over (c, ℓ): accuracy of C4.5. By hits: the paper's pruning; with the table: the default of `hedgerow share`. Only "
        f"folds count in which something can be published. {WHISKERS}"
    )
    return Figure("sharkey-figure-7-sets", picture, caption)


def _overview(folds: dict[str, list[Found]]) -> Table:
    rows = []
    for data, some in folds.items():
        ld = means_of_folds(some, data, "LD")
        ways = {way: means_of_folds(some, data, way) for way in WAYS}
        basis = cross_validated_mean([fmean(fold["BASIS"].values()) for fold in some])
        row = [SET_TITLES[data], str(len(some)), text(cross_validated_mean([fold["largest class"] for fold in some])), text(basis)]
        row += [text(cross_validated_mean(ld))]
        for found in ways.values():
            row += [text(cross_validated_mean(found)), difference(found, ld).signed]
        rows.append(row)
    heads = ["mean accuracy from (5, 2) to (20, 3)", "folds", "largest class", "BASIS", "LD"]
    return Table([*heads, *(head for words in WAYS.values() for head in (f"PPGEN, {words}", "minus LD"))], rows)


def against_ld(folds: Sequence[Found], data: str, way: str, what: str = "accuracy") -> tuple[list[str], list[Mean]]:
    """In the cells in which LD gives data in most folds; one in which PPGEN gives none has no folds to count."""
    names, found = [], []
    for model, m, cell in product(MODELS_7, OWNERS_7, requirements_of(data)):
        theirs = values_7(folds, what, model, cell, "LD")
        if 2 * len(known(theirs)) > len(folds):
            found.append(pairs(values_7(folds, what, model, cell, way, m), theirs))
            names.append(f"{TITLES[model]}, {m} owner{'s' if m > 1 else ''} at ({cell[0]}, {cell[1]})")
    return names, found


def claims_7(results: Sequence[Result]) -> list[Claim]:
    folds = {data: folds_of_set(results, data) for data in SETS_7}
    return [
        _like_nursery(folds, ("car",), "Car gives results like those of Nursery: PPGEN ahead of LD where LD gives data."),
        _like_nursery(folds, ("cmc", "adult"), "Nursery is representative of the other sets (here CMC and Adult), too."),
        _class_match(folds["nursery"]),
        _on_average(folds),
    ]


def _like_nursery(folds: dict[str, list[Found]], sets: Sequence[str], words: str) -> Claim:
    if any(len(folds[data]) < FEWEST for data in sets):
        return Claim(words, "too few folds", "open")
    told, why, ahead, behind = [], [], list[bool](), list[bool]()
    for data in sets:
        _, means = against_ld(folds[data], data, HITS)
        here, not_here = [better(mean) is True for mean in means], [worse(mean) is True for mean in means]
        told.append(f"{SET_TITLES[data]} {spread(means)}; clearly ahead in {counted(here)}")
        none, same = sum(mean.n == 0 for mean in means), sum(mean.mean == mean.error == 0 for mean in means)
        _, other = against_ld(folds[data], data, TABLE)
        why.append(
            f"{SET_TITLES[data]}: clearly behind in {sum(not_here)}, the same answers in {same}, nothing to publish in {none}; with the "
            f"table at hand clearly ahead in {counted([better(mean) is True for mean in other])}, behind in "
            f"{sum(worse(mean) is True for mean in other)}, nothing in {sum(mean.n == 0 for mean in other)}; BASIS is {_lead(folds[data])} "
            "above the largest class."
        )
        ahead += here
        behind += not_here
    return Claim(words, f"PPGEN minus LD, by hits: {'; '.join(told)}", judged(ahead, behind), " ".join(why))


def _lead(folds: Sequence[Found]) -> str:
    return f"{fmean(fold['BASIS'][C45] - fold['largest class'] for fold in folds):.3f}"


def _class_match(folds: Sequence[Found]) -> Claim:
    words = (
        "Class match was compared, too. The paper does not say what it found; we judge what it says of accuracy (PPGEN ahead of LD where "
        "LD gives data) and of class match without pruning (it behaves as accuracy)."
    )
    if len(folds) < FEWEST:
        return Claim(words, "too few folds", "open")
    names, means = against_ld(folds, "nursery", HITS, "class match")
    ahead, behind = [better(mean) is True for mean in means], [worse(mean) is True for mean in means]
    lines = [("LD", 0), *product(WAYS, OWNERS_7)]
    lists = []
    for what in MEASURES:
        of_cells = [known(values_7(folds, what, C45, cell, way, m)) for cell in requirements_of("nursery") for way, m in lines]
        lists.append([fmean(each) for each in of_cells if each])
    try:
        r = correlation(*lists)
    except StatisticsError:
        r = 0.0  # one of them is the same everywhere
    told = f"Nursery, class match of PPGEN minus LD, by hits: {spread(means)}; clearly ahead in {counted(ahead)}"
    holds = [*ahead, r > ALIKE]
    why = lacking("Not clearly so", [*names, "correlation above 0.8"], holds, behind)
    return Claim(words, f"{told}; correlation with accuracy, C4.5: {r:.3f}", judged(holds, behind), why)


def _on_average(folds: dict[str, list[Found]]) -> Claim:
    """Of our own: what a user of `hedgerow share` can expect beside LD."""
    words = (
        "Ours, not the paper's: from (5, 2) to (20, 3) PPGEN with the table at hand is ahead of LD on average, on at least three of four "
        "sets."
    )
    if any(len(some) < FEWEST for some in folds.values()):
        return Claim(words, "too few folds", "open", own=True)
    by = {
        way: {data: difference(means_of_folds(some, data, way), means_of_folds(some, data, "LD")) for data, some in folds.items()}
        for way in WAYS
    }
    ahead = [data for data, mean in by[TABLE].items() if better(mean)]
    told = [f"{words}: {', '.join(f'{SET_TITLES[data]} {mean.signed}' for data, mean in by[way].items())}" for way, words in WAYS.items()]
    why = "The mean over both models, all owners and these requirements; where nothing is published, the largest class counts."
    why += "".join(f" {_why_not_ahead(folds[data], data)}" for data in folds if data not in ahead)
    return Claim(words, "; ".join(told), "reproduced" if len(ahead) >= 3 else "partly" if ahead else "not", why, own=True)


def _why_not_ahead(folds: Sequence[Found], data: str) -> str:
    """What LD loses to its requirement, and what PPGEN loses as the rows are dealt to more owners."""
    ld = means_of_folds(folds, data, "LD")
    basis = [fmean(fold["BASIS"].values()) for fold in folds]
    by_owners = ", ".join(f"{m}: {difference(means_of_folds(folds, data, TABLE, (m,)), ld).signed}" for m in OWNERS_7)
    return (
        f"Not clearly ahead on {SET_TITLES[data]}: LD minus BASIS is {difference(ld, basis).signed} there, of a lead of BASIS over the "
        f"largest class of {_lead(folds)}; PPGEN minus LD by the number of owners is {by_owners}."
    )
