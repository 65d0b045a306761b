"""Figure 7 of Sharkey et al. (2008) from stored results: its tables and chart, and the paper's claims with our verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from statistics import fmean

from hedgerow_experiments.charts import Lines, Panel, Point, Series
from hedgerow_experiments.document import Block, Figure, Table
from hedgerow_experiments.experiment import Claim, Found, Result, Verdict
from hedgerow_experiments.sharkey_numbers import (
    C45,
    FEWEST,
    NAIVE_BAYES,
    OWNERS_7,
    REQUIREMENTS,
    TITLES,
    WHISKERS,
    better,
    counted,
    folds_of_set,
    judged,
    lacking,
    owner_heads,
    spread,
    worse,
)
from hedgerow_experiments.statistics import Mean, cross_validated_mean, difference

LAST_OF_LD = REQUIREMENTS.index((10, 4))  # where LD stops, says the paper
FAR, SHARP, USABLE = 0.30, 0.10, 0.30  # our measures for the paper's words, in shares of rows
KNOWN = {"hits": "by hits", "counts": "by counts"}


def pruned_values(folds: Sequence[Found], model: str, cell: tuple[int, int], what: str, owners: int = 0) -> list[float | None]:
    """One number a fold, None where nothing was published; `what`: hits, counts, LD or BASIS."""
    if what == "BASIS":
        return [fold["BASIS"][model] for fold in folds]
    found = [fold["cells"][f"{cell[0]}, {cell[1]}"][what][model] for fold in folds]
    return found if what == "LD" else [one[str(owners)] for one in found]


def known(some: Iterable[float | None]) -> list[float]:
    return [value for value in some if value is not None]


def pairs(ours: Iterable[float | None], theirs: Iterable[float | None]) -> Mean:
    """The difference in the folds in which both are there."""
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    return difference([a for a, _ in both], [b for _, b in both])


def pruned_text(some: Sequence[float | None]) -> str:
    there = known(some)
    if not there:
        return "none" if some else ""
    return str(cross_validated_mean(there)) + ("" if len(there) == len(some) else f" (in {len(there)} of {len(some)} folds)")


def blocks_7(results: Sequence[Result]) -> list[Block]:
    if not results:
        return []
    folds = folds_of_set(results, "nursery")
    shared = [(f"PPGEN, {name}", "", m) for m, name in zip(OWNERS_7, owner_heads(OWNERS_7), strict=True)]
    lines = [("BASIS", "BASIS", 0), ("LD", "LD", 0), *shared]
    drawn = []
    for model, (how, words) in product((C45, NAIVE_BAYES), KNOWN.items()):
        series = []
        for name, what, m in lines:
            means = [cross_validated_mean(known(pruned_values(folds, model, cell, what or how, m))) for cell in REQUIREMENTS]
            points = [Point(place, mean.mean, mean.error) for place, mean in enumerate(means) if mean.n]
            series.append(Series(name, points, dashed=name == "BASIS"))
        drawn.append(Panel(f"{TITLES[model]}, {words}", series))
    ticks = [(place, f"{c}, {ell}") for place, (c, ell) in enumerate(REQUIREMENTS)]
    title = "Pruned trees against a generalised table on Nursery"
    picture = Lines(title, drawn, "requirement (c, ℓ), stronger to the right", "accuracy", ticks, columns=1)
    caption = (
        f"{title}, over (c, ℓ). PPGEN: learnt from pseudo-data of the owners' pruned trees, where ATP sees hit and miss of each path (by "
        "hits, as in the paper) or its real class counts; LD: learnt from the generalised table. Only folds count in which something can "
        f"be published; a line ends where that is none. {WHISKERS}"
    )
    found: list[Block] = [Figure("sharkey-figure-7", picture, caption)]
    for model in (C45, NAIVE_BAYES):
        heads = [TITLES[model], "LD", *(f"{name}, {KNOWN[how]}" for how in KNOWN for name in owner_heads(OWNERS_7))]
        rows = [
            [
                f"({cell[0]}, {cell[1]})",
                pruned_text(pruned_values(folds, model, cell, "LD")),
                *(pruned_text(pruned_values(folds, model, cell, how, m)) for how in KNOWN for m in OWNERS_7),
            ]
            for cell in REQUIREMENTS
        ]
        found.append(Table(heads, rows))
    return found


def claims_7(results: Sequence[Result]) -> list[Claim]:
    folds = folds_of_set(results, "nursery")
    claims = [*_ahead(folds), _ld_stops(folds), _goes_on(folds), _falls(folds), _more_owners(folds)]
    if len(folds) < FEWEST:
        claims = [Claim(claim.text, "too few folds", "open") for claim in claims]
    return claims


LINES_7 = tuple(product((C45, NAIVE_BAYES), OWNERS_7))


def cell_name(model: str, owners: int, cell: tuple[int, int] | None = None) -> str:
    at = f" at ({cell[0]}, {cell[1]})" if cell else ""
    return f"{TITLES[model]}, {owners} owner{'s' if owners > 1 else ''}{at}"


def _ahead(folds: Sequence[Found]) -> list[Claim]:
    """In the cells in which LD gives data in most folds; one in which PPGEN gives none is no win."""

    names: list[str] = []

    def against_ld(how: str) -> list[Mean]:
        found = []
        names.clear()
        for (model, m), cell in product(LINES_7, REQUIREMENTS):
            theirs = pruned_values(folds, model, cell, "LD")
            if 2 * len(known(theirs)) > len(folds):
                found.append(pairs(pruned_values(folds, model, cell, how, m), theirs))
                names.append(cell_name(model, m, cell))
        return found

    hits, counts = (against_ld(how) for how in KNOWN)
    ahead, also = ([better(mean) is True for mean in means] for means in (hits, counts))
    by_30 = [mean.n >= FEWEST and mean.mean > FAR for mean in hits]
    ours = f"PPGEN minus LD, by hits: {spread(hits)}"
    empty = sum(mean.n < FEWEST for mean in counts)
    by_counts = f"By real class counts it is clearly ahead in {counted(also)}, and has nothing to publish in {empty}."
    behind = [worse(mean) for mean in hits]
    nearer = [worse(Mean(mean.mean - FAR, mean.error, mean.n)) for mean in hits]
    less = "" if all(by_30) else (
        f"Clearly less than 30 points in {counted(nearer)}. Perhaps because of LD's taxonomies, which the paper does not give."
    )  # fmt: skip
    why = f"{lacking('Not clearly', names, ahead, behind)} {by_counts}".strip()
    return [
        Claim(
            "PPGEN is more accurate than LD wherever LD gives data.",
            f"{ours}; clearly ahead in {counted(ahead)}",
            judged(ahead, behind),
            why,
        ),
        Claim(
            "PPGEN is ahead of LD by more than 30 points over the whole range.",
            f"{ours}; by more than 30 points in {counted(by_30)}",
            judged(by_30, nearer),
            less,
        ),
    ]


def _ld_stops(folds: Sequence[Found]) -> Claim:
    shares = [len(known(pruned_values(folds, C45, cell, "LD"))) / max(len(folds), 1) for cell in REQUIREMENTS]
    holds = [share == (1.0 if place < LAST_OF_LD else 0.0) for place, share in enumerate(shares)]
    stops = next((f"({c}, {ell})" for (c, ell), share in zip(REQUIREMENTS, shares, strict=True) if share < 1), "nowhere")
    names = [f"({c}, {ell})" for c, ell in REQUIREMENTS]
    why = lacking("Not as said", names, holds)
    if all(holds):
        why = "With Nursery it follows from the class counts of the whole table, whatever the taxonomies are."
    verdict: Verdict = "reproduced" if all(holds) else "partly" if not all(share == 1 for share in shares) else "not"
    return Claim("LD stops to give data at ℓ = 4, c = 10.", f"first requirement with folds without data: {stops}", verdict, why)


def _goes_on(folds: Sequence[Found]) -> Claim:
    """From the requirement at which LD stops, says the paper: data in most folds, and an accuracy of 30 % or more."""

    def told(how: str) -> tuple[list[bool], str]:
        cells = [pruned_values(folds, model, cell, how, m) for (model, m), cell in product(LINES_7, REQUIREMENTS[LAST_OF_LD:])]
        means = [fmean(known(cell)) if 2 * len(known(cell)) > len(folds) else None for cell in cells]
        there = known(means)
        holds = [mean is not None and mean >= USABLE for mean in means]
        return holds, f"data in {len(there)} of {len(means)} cells" + (f", accuracy {min(there):.3f} to {max(there):.3f}" if there else "")

    (holds, hits), (real, counts) = (told(how) for how in KNOWN)
    names = [cell_name(model, m, cell) for (model, m), cell in product(LINES_7, REQUIREMENTS[LAST_OF_LD:])]
    share = "A third of Nursery's rows are in its largest class: 30 % is less than a constant answer reaches."
    why = f"{lacking('By hits not so', names, holds)} {share}".strip()
    if sum(real) < sum(holds):
        why += " Hit and miss hide that a path holds two classes and no third: where the real counts decide, more trees are empty."
    words = "PPGEN goes on where LD stops, with about 30 % accuracy (or better)."
    return Claim(words, f"by hits: {hits}; by counts: {counts}", judged(holds), why)


def _falls(folds: Sequence[Found]) -> Claim:
    """At (10, 4) against the mean of the stronger requirements, fold by fold."""
    means = []
    for model, m in LINES_7:
        at = pruned_values(folds, model, REQUIREMENTS[LAST_OF_LD], "hits", m)
        after = zip(*(pruned_values(folds, model, cell, "hits", m) for cell in REQUIREMENTS[LAST_OF_LD + 1 :]), strict=True)
        means.append(pairs([fmean(known(fold)) if known(fold) else None for fold in after], at))
    clear, sharp = [worse(mean) is True for mean in means], [worse(mean) is True and mean.mean <= -SHARP for mean in means]
    verdict = judged(sharp, map(better, means))
    if verdict == "not" and any(clear):
        verdict = "partly"
    names = [cell_name(model, m) for model, m in LINES_7]
    why = lacking("Not by 10 points", names, sharp, [better(mean) for mean in means])
    if any(clear) and not any(sharp):
        why = f"It falls, but not sharply: by less than 10 points everywhere. {lacking('Not clearly at all', names, clear)}".strip()
    words = "PPGEN falls sharply after ℓ = 4, c = 10 (our measure: by 10 points on average of what still gives data)."
    ours = f"after minus at (10, 4), by hits: {spread(means)}; clearly lower in {counted(clear)}, by 10 points in {counted(sharp)}"
    return Claim(words, ours, verdict, why)


def _more_owners(folds: Sequence[Found]) -> Claim:
    """Means over the requirements at which all three have data, fold by fold."""
    words, lower, less = [], [], []
    for model in (C45, NAIVE_BAYES):
        one, five, ten = (_common(folds, model, m) for m in OWNERS_7)
        first, second = difference(five, one), difference(ten, five)
        words.append(f"{TITLES[model]} {first.signed} from 1 to 5, {second.signed} from 5 to 10")
        lower.append(worse(difference(ten, one)) is True)
        steps = [[b - a for a, b in zip(*pair, strict=True)] for pair in ((one, five), (five, ten))]
        less.append(better(difference(steps[0], steps[1])) is True)
    verdict: Verdict = "reproduced" if all(lower) or all(less) else "partly" if any(lower) or any(less) else "not"
    why = "The sentence can mean that more owners lower the accuracy, or that each adds less than the one before: " + (
        "the first is what we see." if all(lower) else "the second is what we see." if all(less) else "neither is what we see throughout."
    )
    return Claim("More owners have a diminishing effect on PPGEN's accuracy.", f"by hits: {'; '.join(words)}", verdict, why)


def _common(folds: Sequence[Found], model: str, owners: int) -> list[float]:
    """For each fold the mean accuracy of so many owners, over the requirements at which every number of owners has data."""
    table = {m: [pruned_values(folds, model, cell, "hits", m) for cell in REQUIREMENTS] for m in OWNERS_7}
    means = []
    for fold in range(len(folds)):
        rows = [{m: table[m][place][fold] for m in OWNERS_7} for place in range(len(REQUIREMENTS))]
        there = known(row[owners] for row in rows if None not in row.values())
        if there:
            means.append(fmean(there))
    return means
