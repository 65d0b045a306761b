"""Figures 5 and 6 of Sharkey et al. (2008) from stored results: tables and charts, and the paper's claims with our verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import hypot
from statistics import StatisticsError, correlation, fmean

from hedgerow_experiments.charts import Lines, Panel, Point, Series
from hedgerow_experiments.document import Block, Figure, Table
from hedgerow_experiments.experiment import Claim, Found, Result
from hedgerow_experiments.sharkey_numbers import (
    C45,
    FEWEST,
    NAIVE_BAYES,
    OWNERS,
    RULE,
    SET_TITLES,
    SETS_5,
    SETS_6,
    TITLES,
    WHISKERS,
    below,
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
    with_owners,
    worse,
)
from hedgerow_experiments.statistics import Mean, cross_validated_mean, difference

SHOWN_5 = SETS_5[:3]  # in the paper's figure
MADE = ("PGEN", "BASEGEN")
METHODS = ("PGEN", "PGEN by counts", "BASEGEN")
CLOSE, EQUAL = 0.05, 0.01  # our measures for the paper's words, in shares of rows

# ------------------------------------------------------------ Figures 5 and 6


def generation_panel(title: str, folds: Sequence[Found], model: str) -> Panel:
    series = []
    for method in ("BASIS", *METHODS):
        means = [(owners, cross_validated_mean(values(folds, model, method, owners))) for owners in OWNERS]
        points = [Point(owners, mean.mean, mean.error) for owners, mean in means if mean.n]
        if points:
            series.append(Series(method, points, dashed=method == "BASIS"))
    return Panel(title, series)


def generation_table(results: Sequence[Result], sets: Sequence[str], models: Sequence[str]) -> Table:
    rows = []
    for model, data in product(models, sets):
        folds = folds_of_set(results, data)
        basis = text(cross_validated_mean(values(folds, model, "BASIS", 0)))
        for method in METHODS:
            cells = [text(cross_validated_mean(values(folds, model, method, owners))) for owners in OWNERS]
            if any(cells):
                rows.append([TITLES[model], SET_TITLES[data], method, basis, *cells])
    return Table(["accuracy of", "data", "from", "BASIS", *owner_heads()], rows)


def match_table(results: Sequence[Result]) -> Table:
    rows = []
    for what, data, method in product(("class match", "path match"), SETS_5, MADE):
        folds = folds_of_set(results, data)
        cells = [text(cross_validated_mean(values(folds, C45, method, owners, what))) for owners in OWNERS]
        if any(cells):
            rows.append([what, SET_TITLES[data], method, *cells])
    return Table(["decision tree against BASIS", "data", "from", *owner_heads()], rows)


def generation_figure(results: Sequence[Result], name: str, title: str, cells: Sequence[tuple[str, str]], columns: int) -> Figure:
    drawn = [
        generation_panel(f"{SET_TITLES[data]}, {TITLES[model]}", folds, model)
        for model, data in cells
        if (folds := folds_of_set(results, data))
    ]
    picture = Lines(title, drawn, "owners", "accuracy", [(number, str(number)) for number in OWNERS], columns=columns)
    caption = (
        f"{title}. PGEN and BASEGEN: learnt from pseudo-data of the owners' trees; BASIS: from all their rows, pooled. "
        f'"By counts": with the real class counts of each path, which the paper does not use. {WHISKERS}'
    )
    return Figure(name, picture, caption)


def blocks_5(results: Sequence[Result]) -> list[Block]:
    if not results:
        return []
    trees, bayes = ([(model, data) for data in SETS_5] for model in (C45, NAIVE_BAYES))
    return [
        generation_figure(results, "sharkey-figure-5a", "Decision trees from pseudo-data, by owners", trees, 2),
        generation_figure(results, "sharkey-figure-5b", "Naive Bayes from pseudo-data, by owners", bayes, 2),
        generation_table(results, SETS_5, (C45, NAIVE_BAYES)),
        "Class match is the share of test rows that a model classifies as BASIS does; path match the share of paths that both trees have.",
        match_table(results),
    ]


def blocks_6(results: Sequence[Result]) -> list[Block]:
    if not results:
        return []
    cells = [(model, data) for data in SETS_6 for model in (RULE, C45, NAIVE_BAYES)]
    return [
        generation_figure(results, "sharkey-figure-6", "Three kinds of models from pseudo-data, by owners", cells, 3),
        generation_table(results, SETS_6, (RULE, C45, NAIVE_BAYES)),
    ]


# ------------------------------------------------------------ claims about Figure 5


def claims_5(results: Sequence[Result]) -> list[Claim]:
    folds = {data: folds_of_set(results, data) for data in SETS_5}
    trends = [_trend_claims(folds, model) for model in (C45, NAIVE_BAYES)]
    return [
        _close_to_basis(folds),
        _always_worse(folds, "BASIS", "Decision trees: BASEGEN is always worse than BASIS."),
        _always_worse(folds, "PGEN", "Decision trees: PGEN makes better pseudo-data than BASEGEN."),
        *trends[0],
        *trends[1],
        _smaller_gap(folds),
        _adult_basegen(folds),
        _cmc(folds),
        _class_match(folds),
        _path_match(folds),
    ]


def _close_to_basis(folds: dict[str, list[Found]]) -> Claim:
    means = {data: [gap(folds[data], (C45, "PGEN", m), (C45, "BASIS", 0)) for m in OWNERS] for data in SHOWN_5}
    cells = [mean for some in means.values() for mean in some]
    holds = [None if mean.n < FEWEST else mean.mean >= -CLOSE for mean in cells]
    far = lacking("Further away", with_owners(SHOWN_5), holds)
    why = f"{far} Perhaps because each tree sees few rows." if far else ""
    ours = f"PGEN minus BASIS: {by_set(means)}; within 5 points in {counted(holds)}"
    verdict = judged(holds, [worse(Mean(mean.mean + CLOSE, mean.error, mean.n)) for mean in cells])
    return Claim("Decision trees: PGEN does very well beside BASIS (our measure: within 5 points).", ours, verdict, why)


def _always_worse(folds: dict[str, list[Found]], than: str, words: str) -> Claim:
    means = {data: [gap(folds[data], (C45, "BASEGEN", m), (C45, than, m)) for m in OWNERS] for data in SHOWN_5}
    cells = [mean for some in means.values() for mean in some]
    holds, opposite = [worse(mean) for mean in cells], [better(mean) for mean in cells]
    verdict = judged(holds, opposite)
    why = lacking("Not clearly so, by owners", with_owners(SHOWN_5), holds, opposite)
    if verdict == "partly" and ("Car" in why or "Nursery" in why):
        why += " Perhaps because Car and Nursery are the whole space of tuples, where random rows are spread as the real ones are."
    return Claim(words, f"BASEGEN minus {than}: {by_set(means)}; clearly below 0 in {counted(holds)}", verdict, why)


def _rise(folds: Sequence[Found], model: str, method: str) -> Mean:
    """From one owner to ten."""
    return gap(folds, (model, method, OWNERS[-1]), (model, method, OWNERS[0]))


def _trend_claims(folds: dict[str, list[Found]], model: str) -> list[Claim]:
    who = "Decision trees" if model == C45 else "Naive Bayes"
    rises = {(data, method): _rise(folds[data], model, method) for data in SHOWN_5 for method in MADE}

    def told(sets: Sequence[str], method: str) -> str:
        return f"{method}, 10 owners minus 1: " + ", ".join(f"{SET_TITLES[data]} {rises[data, method].signed}" for data in sets)

    sets = ("car", "nursery")
    up, down = [better(rises[data, "PGEN"]) for data in sets], [worse(rises[data, "BASEGEN"]) for data in sets]
    falls, gains = [worse(rises[data, "PGEN"]) for data in sets], [better(rises[data, "BASEGEN"]) for data in sets]
    names = [SET_TITLES[data] for data in sets]
    fewer = " Perhaps because each tree sees fewer rows." if any(falls) else ""
    why = lacking("Not clearly so", names, up, falls) + fewer, lacking("Not clearly so", names, down, gains)
    found = [
        Claim(f"{who}: with more owners PGEN gets better on Car and Nursery.", told(sets, "PGEN"), judged(up, falls), why[0]),
        Claim(f"{who}: with more owners BASEGEN gets worse on Car and Nursery.", told(sets, "BASEGEN"), judged(down, gains), why[1]),
    ]
    if model == C45:
        on_adult = [better(rises["adult", "PGEN"]), worse(rises["adult", "BASEGEN"])]
        absent = [None if one is None else not one for one in on_adult]
        ours = f"{told(['adult'], 'PGEN')}; {told(['adult'], 'BASEGEN')}"
        seen = lacking("Seen", MADE, absent)
        found.append(Claim("Decision trees: neither trend is seen on Adult.", ours, judged(absent), seen))
    return found


def _smaller_gap(folds: dict[str, list[Found]]) -> Claim:
    def gaps(data: str, model: str) -> list[float]:
        """PGEN minus BASEGEN, the mean over the numbers of owners, fold by fold."""
        some = [[values(folds[data], model, method, m) for m in OWNERS] for method in MADE]
        pgen, basegen = ([fmean(fold) for fold in zip(*lists, strict=True)] for lists in some)
        return [a - b for a, b in zip(pgen, basegen, strict=True)]

    holds, ours, sets = [], [], ("car", "nursery")
    for data in sets:
        tree, bayes = gaps(data, C45), gaps(data, NAIVE_BAYES)
        less = better(difference(tree, bayes))
        holds.append(less if less is None else less and abs(fmean(bayes)) < abs(fmean(tree)))
        ours.append(f"{SET_TITLES[data]} {cross_validated_mean(bayes).signed}, trees {cross_validated_mean(tree).signed}")
    words = "Naive Bayes: PGEN and BASEGEN differ less than with decision trees, on Car and Nursery."
    why = lacking("Not clearly less", [SET_TITLES[data] for data in sets], holds)
    return Claim(words, f"PGEN minus BASEGEN, over all owners: {'; '.join(ours)}", judged(holds), why)


def _adult_basegen(folds: dict[str, list[Found]]) -> Claim:
    ends = {model: [values(folds["adult"], model, "BASEGEN", m) for m in (OWNERS[-1], OWNERS[0])] for model in (NAIVE_BAYES, C45)}
    bayes, tree = ([a - b for a, b in zip(*ends[model], strict=True)] for model in (NAIVE_BAYES, C45))
    rise, other = cross_validated_mean(bayes), cross_validated_mean(tree)
    words = "Naive Bayes on Adult: BASEGEN gets better with more owners, and more so than with decision trees."
    more = difference(bayes, tree)
    holds, opposite = [better(rise), better(more)], [worse(rise), worse(more)]
    why = lacking("Not clearly so", ["better with more owners", "more so than with decision trees"], holds, opposite)
    if why and rise.error > EQUAL:
        why += " It changes much from fold to fold: perhaps random rows of 14 attributes are far from real ones."
    ours = f"10 owners minus 1: {rise.signed}; decision trees {other.signed}; the difference {more.signed}"
    return Claim(words, ours, judged(holds, opposite), why)


def _cmc(folds: dict[str, list[Found]]) -> Claim:
    near = [gap(folds["cmc"], (C45, "PGEN", m), (C45, "BASIS", 0)) for m in OWNERS]
    base = [gap(folds["cmc"], (C45, "BASEGEN", m), (C45, "BASIS", 0)) for m in OWNERS]
    holds = [None if mean.n < FEWEST else mean.mean >= -CLOSE for mean in near] + [worse(mean) for mean in base]
    ours = f"Against BASIS: PGEN {spread(near)}, BASEGEN {spread(base)}"
    words = "The sets that are not shown (here CMC) are similar: PGEN within 5 points of BASIS, BASEGEN worse."
    opposite = [worse(Mean(mean.mean + CLOSE, mean.error, mean.n)) for mean in near] + [better(mean) for mean in base]
    names = [f"{method} with {m} owner{'s' if m > 1 else ''}" for method in MADE for m in OWNERS]
    why = f'{lacking("Not so", names, holds, opposite)} "Train" is not identified in the paper.'.strip()
    return Claim(words, f"{ours}; as said in {counted(holds)}", judged(holds, opposite), why)


def _class_match(folds: dict[str, list[Found]]) -> Claim:
    found = {}
    for data in SETS_5:
        lists = [
            [cross_validated_mean(values(folds[data], C45, method, m, what)) for method in MADE for m in OWNERS]
            for what in ("accuracy", "class match")
        ]
        try:
            enough = all(mean.n >= FEWEST for mean in lists[0])
            found[data] = correlation(*([mean.mean for mean in some] for some in lists)) if enough else None
        except StatisticsError:
            found[data] = None  # one of them is the same everywhere
    ours = ", ".join(f"{SET_TITLES[data]} {'–' if r is None else format(r, '.3f')}" for data, r in found.items())
    words = "Class match behaves as accuracy does (our measure: correlated above 0.8 over methods and owners, for decision trees)."
    holds = [None if r is None else r > 0.8 for r in found.values()]
    return Claim(words, f"correlation: {ours}", judged(holds), lacking("Not above 0.8", [SET_TITLES[data] for data in found], holds))


def _path_match(folds: dict[str, list[Found]]) -> Claim:
    cells = [
        (m, cross_validated_mean(values(folds[data], C45, method, m, "path match"))) for data, method, m in product(SETS_5, MADE, OWNERS)
    ]
    under = {limit: [below(mean, limit) for _, mean in cells] for limit in (0.30, 0.01)}
    enough = None not in under[0.30]
    holds = [enough and sum(map(bool, under[limit])) >= share * len(cells) for limit, share in ((0.30, 0.5), (0.01, 0.25))]
    large = max((mean for m, mean in cells if m == 1 and mean.n), key=lambda mean: mean.mean, default=None)
    why = lacking("Not so often", ["below 30 %", "below 1 %"], holds) if enough else ""
    if large is not None and large.mean >= 0.30:
        why = f"{why} The tree of a single owner comes back in larger part: up to {large} of its paths.".strip()
    ours = f"below 30 % in {counted(under[0.30])}, below 1 % in {counted(under[0.01])}"
    words = "Path match: typically below 30 % (our measure: half of the cells) and often below 1 % (a quarter)."
    return Claim(words, ours, judged(holds) if enough else "open", why)


# ------------------------------------------------------------ claims about Figure 6


def claims_6(results: Sequence[Result]) -> list[Claim]:
    folds = {data: folds_of_set(results, data) for data in SETS_6}
    makers = [("BASIS", 1), *product(MADE, OWNERS)]

    def nursery_minus_adult(model: str) -> list[Mean]:
        pairs = [[cross_validated_mean(values(folds[data], model, method, m)) for data in ("nursery", "adult")] for method, m in makers]
        return [Mean(one.mean - other.mean, hypot(one.error, other.error), min(one.n, other.n)) for one, other in pairs]

    over_sets = {model: nursery_minus_adult(model) for model in (C45, NAIVE_BAYES, RULE)}
    two = [better(mean) for model in (C45, NAIVE_BAYES) for mean in over_sets[model]]
    rule = [worse(mean) for mean in over_sets[RULE]]
    best = {
        data: [gap(folds[data], (C45, how, m), (other, how, m)) for other in (NAIVE_BAYES, RULE) for how, m in makers] for data in SETS_6
    }
    first = [better(mean) for some in best.values() for mean in some]
    made = {
        (model, data): [gap(folds[data], (model, "PGEN", m), (model, "BASEGEN", m)) for m in OWNERS]
        for model in (NAIVE_BAYES, RULE)
        for data in SETS_6
    }
    equal = [None if mean.n < FEWEST else abs(mean.mean) <= EQUAL for mean in made[NAIVE_BAYES, "nursery"]]
    pgen = [better(mean) for mean in made[NAIVE_BAYES, "adult"]]
    basegen = [worse(mean) for mean in made[RULE, "adult"]]
    told = "PGEN minus BASEGEN:"
    way = [f"{method} with {m}" if method != "BASIS" else method for method, m in makers]
    on_both = [f"{title}, {each}" for title in ("trees", "naive Bayes") for each in way]
    pairs = [f"{SET_TITLES[data]}, {TITLES[other]}, {each}" for data in SETS_6 for other in (NAIVE_BAYES, RULE) for each in way]

    def claim(words: str, ours: str, holds: Sequence[bool | None], opposite: Sequence[bool | None], names: Sequence[str]) -> Claim:
        why = lacking("Not clearly so, by owners", names, holds, opposite)
        return Claim(words, f"{ours} in {counted(holds)}", judged(holds, opposite), why)

    return [
        claim(
            "Decision trees and naive Bayes do better on Nursery than on Adult.",
            f"Nursery minus Adult: trees {spread(over_sets[C45])}, naive Bayes {spread(over_sets[NAIVE_BAYES])}; clearly above 0",
            two,
            [worse(mean) for model in (C45, NAIVE_BAYES) for mean in over_sets[model]],
            on_both,
        ),
        claim(
            "Conjunctive rules do better on Adult than on Nursery.",
            f"Nursery minus Adult: {spread(over_sets[RULE])}; clearly below 0",
            rule,
            [better(mean) for mean in over_sets[RULE]],
            way,
        ),
        claim(
            "Global decision trees are more accurate than both other models.",
            f"trees minus the others: {by_set(best)}; clearly above 0",
            first,
            [worse(mean) for some in best.values() for mean in some],
            pairs,
        ),
        claim(
            "Naive Bayes on Nursery does equally well with BASEGEN and PGEN (our measure: within 1 point).",
            f"{told} {spread(made[NAIVE_BAYES, 'nursery'])}; within 1 point",
            equal,
            [worse(Mean(EQUAL - abs(mean.mean), mean.error, mean.n)) for mean in made[NAIVE_BAYES, "nursery"]],
            with_owners(["nursery"]),
        ),
        claim(
            "Naive Bayes on Adult does better with PGEN than with BASEGEN.",
            f"{told} {spread(made[NAIVE_BAYES, 'adult'])}; clearly above 0",
            pgen,
            [worse(mean) for mean in made[NAIVE_BAYES, "adult"]],
            with_owners(["adult"]),
        ),
        claim(
            "Conjunctive rules on Adult do much better with BASEGEN than with PGEN.",
            f"{told} {spread(made[RULE, 'adult'])}; clearly below 0",
            basegen,
            [better(mean) for mean in made[RULE, "adult"]],
            with_owners(["adult"]),
        ),
    ]
