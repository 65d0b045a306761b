"""Do the released counts add up to the table? Rows that no leaf counted show a schema that does not fit its table; so do columns of which
nearly all rows are counted as missing or above their bounds, classes without rows, and counts that hold hardly any rows at all.

A comparison of released numbers: it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.noise import Gaussian
from hedgerow.inference.text import plain, share_text
from hedgerow.schema.attributes import Attribute, Categorical, Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import CountedForest

WORTH_SAYING = 0.05  # of the rows
NEARLY_ALL = 0.9  # of the rows of a column
HALF = 0.5  # of the rows: where no more are missing, a forest has learnt from the others
SOME = 10_000  # rows of a block in which numbers beyond their bounds are looked for
TOLD_FROM = 20  # rows that are predicted: rows come one by one, too, and of few many may well lack a value
# Of a number at its upper bound: this share of its cells at most, where it has so many cells, and a tree so many groups of them.
FEW_CELLS, FINE, SEVERAL = 0.5, 50, 3
FEWEST = 4  # standard deviations of the number of all rows: counts that hold fewer may hold none
MANY_UNKNOWN = 0.1  # of the rows that are predicted: these are the user's own, and the number is exact
FEW = 3  # attributes that are named
FAR = 8  # standard deviations of a node's count: noise alone goes so far once in 100,000, since Laplace noise has long tails
SELDOM = math.log(100_000)  # the same of a tree's total: once in so many trees (`_far`)
EMPTY = 2  # standard deviations of its count that a class without rows has at most; and so many more must still be few
NEXT_TO_NONE = 4  # rows: whatever the noise
LEAST_ROWS = 200  # a smaller table may well lack a class
FEW_OF_CLASS = 0.1  # of the rows; where there are many classes, half of what each would have if all were as frequent
# Saved forests are read by this, so another number needs other rules (`additive.RULES`).
BY_NOISE = 0.01  # how often noise alone makes one of all trees seem to lack rows, where that is stated or read and not warned of
FAR_ROWS = 7  # the same of the noisy number of rows, of which there is one: once in 40,000 tables


def not_counted(forest: CountedForest, rows: int | None, rows_sd: float = 0.0) -> str | None:
    """A sentence about rows that are missing from the counts, or None if noise could explain them.

    Trees are first compared with each other, where the number of rows does not matter: one that lacks rows splits on an attribute whose
    values are not all declared. What the others lack together, against the number of rows, is owed to what they share: the class.

    rows: the number of rows, declared or noisy
    """
    found = _missing(forest, rows, rows_sd)
    said = []
    if found.share:
        target, also = forest.codebook.schema.target, _also_possible(forest, found)
        said.append(
            f"about {found.share:.0%} of the rows are missing from the counts: the column {plain(target.name)} "
            f"(the target){also} is empty there, or holds values that the schema does not declare. Declared classes are "
            f"{', '.join(map(repr, target.classes))}. `hedgerow schema check` (`schema.check(table)`) tells its owner which, before "
            "anything is paid. Rows without a label tell nothing, and are best left out before a fit."
            + ("" if rows is None or rows_sd else f" Or this table, as a part of one may, has fewer rows than the {rows:,} declared.")
        )
    totals, whole, lacking = found.totals, found.whole, found.lacking
    names = _suspects(forest, found)
    if lacking and whole > 0:
        where = f"in {_first_few(names)}" if names else f"in attributes of {len(lacking)} of {len(totals)} trees"
        share = min((whole - min(totals[lacking])) / whole, 1)
        said.append(
            f"{'up to' if len(names) > 1 else 'about'} {share:.0%} of the rows have {where} no value that the schema declares, and are not "
            "counted there. Declare them, or name branches for them with `other` and `missing`."
        )
    if found.share > HALF or len(names) > 1:
        said.append(
            f"Or columns are mixed up: in an array without names they stand in the order of the schema, {_first_few(_names(forest))}."
        )
    return " ".join([*said[:1], *(text[0].upper() + text[1:] for text in said[1:])]) + _beyond_the_limit(forest, rows) if said else None


def share_missing(forest: CountedForest, rows: int | None, rows_sd: float = 0.0) -> float:
    """Of the rows that are in no tree; 0 where noise could explain them."""
    return _missing(forest, rows, rows_sd).share


def only_labels_missing(forest: CountedForest, rows: int | None) -> bool:
    """Whether some rows are in no tree, fewer than half, and nothing else is missing: rows without a declared class."""
    found = _missing(forest, rows, 0.0)
    return 0 < found.share <= HALF and not found.lacking


@dataclass(frozen=True)
class _Missing:
    """share: of the rows that are in no tree; full, lacking: trees that have all others, and those that lack more; whole: what the first
    hold; lack: whether trees show that rows are missing
    """

    share: float
    full: set[int]
    lacking: list[int]
    totals: NDArray[np.float64]
    whole: float
    lack: Callable[[Collection[int]], bool]


def _missing(forest: CountedForest, rows: int | None, rows_sd: float) -> _Missing:
    totals = np.array([float(counts[0].sum()) for counts in forest.node_counts])
    errors = np.array([float(forest.node_noise_sd(t)[0]) for t in range(len(forest.trees))]) * math.sqrt(forest.codebook.n_classes)
    far = _far(forest)
    full = full_trees(totals, errors, far)
    whole, _ = _mean(totals, errors, full)
    expected = float(rows) if rows is not None else whole

    def lack(trees: Collection[int]) -> bool:
        held, error = _mean(totals, errors, trees)
        return expected - held > max(WORTH_SAYING * expected, math.hypot(max(far[t] for t in trees) * error, FAR_ROWS * rows_sd))

    share = min((expected - whole) / expected, 1.0) if rows is not None and expected > 0 and lack(full) else 0.0
    return _Missing(share, full, [t for t in range(len(totals)) if t not in full], totals, whole, lack)


def class_rows(forest: CountedForest) -> tuple[NDArray[np.float64], float]:
    """Rows of each class, and their error: the weighted mean over the trees that lack no rows."""
    counts = np.array([counts[0] for counts in forest.node_counts], dtype=np.float64)
    errors = np.array([float(forest.node_noise_sd(t)[0]) for t in range(len(forest.trees))])
    own = sorted(full_trees(counts.sum(axis=1), errors * math.sqrt(counts.shape[1]), far_by_noise(forest)))
    least = max(float(errors[own].min()), 1e-9)
    weights = (least / np.maximum(errors[own], 1e-9)) ** 2  # of trees that are alike exactly 1
    return np.average(counts[own], axis=0, weights=weights), float(least / np.sqrt(weights.sum())) if forest.noisy else 0.0


def far_by_noise(forest: CountedForest) -> list[float]:
    """For each tree so many standard deviations of its total as by noise alone any of them lacks beside another in one of 1/BY_NOISE
    forests at most.
    """
    trees = len(forest.trees)
    return _far(forest, math.log(max(trees * (trees - 1), 1) / BY_NOISE))


def class_shares(forest: CountedForest) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How frequent each class is, and what the noise may do to that: the one estimate of released counts that everything states.

    Even shares, and errors of 0.5, where the counts say nothing.
    """
    rows, error = class_rows(forest)
    rows = np.maximum(rows, 0)
    if not rows.sum() > 0:
        return np.full(len(rows), 1 / len(rows)), np.full(len(rows), 0.5)
    shares = rows / rows.sum()
    return shares, np.minimum(error * np.sqrt((1 - shares) ** 2 + (len(rows) - 1) * shares**2) / rows.sum(), 0.5)


def without_rows(forest: CountedForest) -> str | None:
    """A sentence about declared classes that have about no rows, or None where noise could hide more than a few."""
    rows, error = class_rows(forest)
    whole, target = float(rows.sum()), forest.codebook.schema.target
    few = min(FEW_OF_CLASS, 0.5 / len(rows)) * whole
    empty = [c for c in range(len(rows)) if rows[c] < max(EMPTY * error, NEXT_TO_NONE) and rows[c] + EMPTY * error < few]
    if not empty or whole < LEAST_ROWS:
        return None
    named = ", ".join(f"{plain(target.classes[c])} (about {max(rows[c], 0):,.0f} ± {error:,.0f})" for c in empty[:FEW])
    more = f" and {len(empty) - FEW} more" if len(empty) > FEW else ""
    one = len(empty) == 1
    return (
        f"of about {whole:,.0f} counted rows hardly any {'has the class' if one else 'have the classes'} {named}{more}: "
        f"{'is it' if one else 'are they'} spelled as in the column {plain(target.name)} of the table? If {'it is' if one else 'they are'} "
        "only rare, more ε or more rows would show it."
    )


def hardly_any(forest: CountedForest) -> str | None:
    """A sentence about counts that may hold no row at all, or None."""
    whole, error = all_rows(forest)
    if whole >= FEWEST * error:
        return None
    target = forest.codebook.schema.target
    known = ", ".join(plain(value) for value in target.classes[:FEW]) + (", …" if len(target.classes) > FEW else "")
    return (
        f"about {max(whole, 0):,.0f} ± {error:,.0f} rows are counted, and noise alone may make as many: these are too few rows for this "
        f"ε, or the column {plain(target.name)} holds other values than the declared classes ({known}), or an attribute others than are "
        "declared, or the columns of an array are not in the order of the schema. `hedgerow schema check`, in Python "
        "`schema.check(table)`, tells its owner which, and costs nothing."
    )


def at_upper_bound(forest: CountedForest) -> str | None:
    """A sentence about numbers of which nearly all rows lie at their upper bound, or None where noise could explain them.

    Nothing is said of lower bounds: amounts are often 0, and 0 is often the bound.
    """
    named = _named_where_nearly_all(forest, _last_share, lambda _: "")
    return named and (
        f"nearly all rows lie at or above the upper bound of {named}, where they cannot be told apart. If that is the most frequent value, "
        "all is well; if the bound is too low, or the table in another unit, correct one of them before you pay again. `hedgerow schema "
        "check` (`schema.check(table)`) tells its owner which, and costs nothing."
    )


def not_read(forest: CountedForest) -> str | None:
    """A sentence about columns of which nearly all rows are counted as missing (or `other`), or None where noise could explain them.

    Told where released counts have more than nine of ten rows there, and noise alone would not bring so many if half of them were.
    """
    named = _named_where_nearly_all(forest, _unread_share, lambda attribute: f": {_what_to_check(attribute)}")
    return named and (
        f"nearly all rows are counted as missing or undeclared in {named}: little is learnt from that. If they are missing in the table, "
        "all is well, and the column may be left out. If the table has values there, they are written otherwise than they are read: "
        "correct the table or the schema before you pay again."
    )


class Unknown:
    """Of rows that are predicted, block by block: in how many each column has no declared value. They are the user's own: exact numbers.

    A missing value is none of these where the schema declares `missing`.
    """

    def __init__(self, codebook: Codebook, absent: Collection[str] = ()) -> None:
        self.schema, self.rows = codebook.schema, 0
        self.declared = np.array(
            [np.iinfo(np.int64).max if n in absent else d for n, d in zip(self.schema.names, codebook.declared, strict=True)]
        )
        branches = zip(self.schema.attributes, codebook.coders, strict=False)
        self.missing = np.array([c.missing if isinstance(a, Categorical) and a.missing is not None else -1 for a, c in branches])
        self.unknown = np.zeros(len(self.declared), dtype=np.int64)
        self.few = np.where(np.array(codebook.elsewhere) < 0, MANY_UNKNOWN, HALF)  # where others have a branch, some were expected
        self.last = np.array([codebook.numeric_cells(a) - 1 for a in range(len(self.declared))])
        self.at_ends, self.looked_at = np.zeros((2, len(self.declared)), dtype=np.int64), 0

    def add(self, codes: NDArray[np.unsignedinteger[Any]]) -> None:
        self.rows += len(codes)
        some = codes[:: -(-len(codes) // SOME) or 1]
        self.looked_at += len(some)
        self.at_ends += np.array([(some == 0).sum(axis=0), (some == self.last).sum(axis=0)])
        self.unknown += ((codes >= self.declared) & (codes != self.missing)).sum(axis=0)

    def text(self, count_missing: Callable[[list[str]], list[int]]) -> str | None:
        """A sentence about the columns where these are more than a few, or None.

        count_missing: how many values of these columns are missing; numbers that are, and that cannot be read, have the same code
        """
        shared = [a for a in self._many() if isinstance(entry := self.schema.attributes[a], Numeric) and entry.missing is not None]
        if shared:
            self.unknown[shared] -= count_missing([self.schema.names[a] for a in shared])
        shares = [(self.unknown[a] / self.rows, self.schema.attributes[a]) for a in self._many()]
        said = [f"{plain(attribute.name)} ({share:.0%} of the rows: {_what_to_check(attribute)})" for share, attribute in shares]
        return f"columns with values that are missing, undeclared or not readable: {_first_few(said)}" if said else None

    def beyond_text(self, share_of: Callable[[int, int], float]) -> str | None:
        """A sentence about numbers of which nearly all rows are in the first cell or the last, where few are by released counts: values in
        another unit count as the bound. None without any, and of few rows. share_of: an attribute's code, of the forest's rows
        """
        said = []
        many = (self.last > 1) & (self.at_ends.max(axis=0) > NEARLY_ALL * self.looked_at)
        for a in np.flatnonzero(many & (self.rows >= TOLD_FROM)).tolist():
            end = int(self.at_ends[:, a].argmax())
            usual, name = share_of(a, int(self.last[a]) * end), plain(self.schema.names[a])
            if usual < HALF:
                said.append(f"the {('first', 'last')[end]} range of {name}, where {share_text(usual)} of the forest's rows are")
        unit = "Are the numbers in the unit of the schema? What is beyond its bounds is counted there."
        return f"nearly all rows are in {_first_few(said)}. {unit}" if said else None

    def _many(self) -> list[int]:
        return [int(a) for a in np.argsort(-self.unknown, kind="stable") if self.unknown[a] > self.few[a] * self.rows]


def all_rows(forest: CountedForest) -> tuple[float, float]:
    """The number of rows that all trees together show, and its error: that of one tree is far less sure."""
    rows, error = class_rows(forest)
    return float(rows.sum()), error * math.sqrt(len(rows))


def may_lack_rows(forest: CountedForest) -> bool:
    """Whether every tree asks an attribute that has values without a branch: rows with these are in none of its counts."""
    losing = {a for a, attribute in enumerate(forest.codebook.schema.attributes) if _loses_rows(attribute)}
    return all(asked & losing for asked in _asked(forest))


def _named_where_nearly_all(
    forest: CountedForest, share_of: Callable[[CountedForest, int, int, tuple[float, float]], Share], words: Callable[[Attribute], str]
) -> str | None:
    """The attributes of which some tree shows that share of the rows above NEARLY_ALL, by name with these words; None without any."""
    whole, said = all_rows(forest), []
    for a, attribute in enumerate(forest.codebook.schema.attributes):
        share, error = max((share_of(forest, t, a, whole) for t in range(len(forest.trees))), default=NOTHING)
        if share > NEARLY_ALL:
            off = f" ± {error:.0%}" if error >= 0.005 else ""
            said.append(f"{plain(attribute.name)} (about {share:.0%}{off}{words(attribute)})")
    return _first_few(said) if said else None


def _first_few(said: list[str]) -> str:
    return ", ".join(said[:FEW]) + (f" and {len(said) - FEW} more column{'s' * (len(said) > FEW + 1)}" if len(said) > FEW else "")


Share = tuple[float, float]  # of all rows, and its error
NOTHING: Share = (0.0, 0.0)


def _unread_share(forest: CountedForest, t: int, a: int, whole: tuple[float, float]) -> Share:
    """The share of all rows that have no declared value of the attribute where a tree first asks for it; 0 where noise could explain it.

    Of all rows, not of those that come so far: these may be the ones that lack everything.
    """
    tree, codebook = forest.trees[t], forest.codebook
    asking = np.flatnonzero(tree.attribute == a)
    known = codebook.declared[a]
    if not len(asking) or known == codebook.sizes[a]:
        return NOTHING
    asking = asking[tree.depth[asking] == tree.depth[asking].min()]  # none of them is below another
    children = tree.branch[tree.first_branch[asking][:, None] + np.arange(codebook.sizes[a])]
    unread = np.setdiff1d(children[:, known:], [-1])
    if np.isin(unread, children[:, :known]).any():  # missing values share a branch with others
        return NOTHING
    return _share(forest, t, unread, whole)


def _last_share(forest: CountedForest, t: int, a: int, whole: tuple[float, float]) -> Share:
    """The share of all rows in the last cells of a number, which a tree asks for first; 0 where noise could explain it, and where these
    are more than a few of its cells.
    """
    tree, codebook = forest.trees[t], forest.codebook
    cells, entry = codebook.numeric_cells(a), codebook.schema.attributes[a]
    few = isinstance(entry, Numeric) and entry.integer and entry.high - entry.low < FINE
    if tree.attribute[0] != a or cells < FINE or few:  # of few whole numbers the last is a value like others
        return NOTHING
    children = tree.branch[tree.first_branch[0] + np.arange(cells)]
    last = int(children[-1])
    if last < 0 or int((children == last).sum()) > FEW_CELLS * cells or len(np.unique(children)) < SEVERAL:
        return NOTHING
    return _share(forest, t, np.array([last]), whole)


def _share(forest: CountedForest, t: int, nodes: NDArray[np.int64], whole: tuple[float, float]) -> Share:
    """The share of all rows that these nodes hold; 0 where noise would bring more than half of them there."""
    (rows, error), variance = whole, forest.node_noise_sd(t)[nodes] ** 2 * forest.codebook.n_classes
    there = float(forest.node_counts[t][nodes].sum())
    if rows <= 0 or there - rows / 2 <= FAR * math.hypot(math.sqrt(variance.sum()), error / 2):
        return NOTHING
    return min(there / rows, 1.0), math.hypot(math.sqrt(variance.sum()), error * there / rows) / rows


def _what_to_check(attribute: Attribute) -> str:
    if isinstance(attribute, Categorical):
        return "is each value spelled as it is declared?"
    if attribute.date is not None:
        return f"are its dates written as {attribute.date}, as the schema says?"
    return "are its numbers written like 65447.2, without separators or units?"


def _far(forest: CountedForest, seldom: float = SELDOM) -> list[float]:
    """For each tree so many standard deviations of its total as noise alone goes once in e^seldom trees.

    Of a sum of N Laplace numbers by Bernstein's inequality, z²/2 = seldom·(1 + z/√(2N)); of Gaussian noise, N is without end.
    """
    found = []
    for counts, noises in zip(forest.counts, forest.scales, strict=True):
        tail = 0.0 if all(isinstance(noise, Gaussian) for noise in noises) else seldom / math.sqrt(2 * counts.size * len(noises))
        found.append(tail + math.sqrt(tail**2 + 2 * seldom))
    return found


def full_trees(totals: NDArray[np.float64], errors: NDArray[np.float64], far: Sequence[float]) -> set[int]:
    """The trees that lack no rows beside the others. far: so many standard deviations are no noise

    They are first compared with the one that surely holds most: one of little noise that lacks rows would outweigh it in their mean.
    """

    def lacking(whole: float, error: float) -> set[int]:
        return {t for t in full if whole - totals[t] > max(WORTH_SAYING * abs(whole), far[t] * math.hypot(errors[t], error))}

    surest = int(np.argmax(totals - np.asarray(far) * errors))
    full = set(range(len(totals)))
    full -= lacking(float(totals[surest]), float(errors[surest]))
    while (more := lacking(*_mean(totals, errors, full))) and more != full:
        full -= more
    return full


def _mean(totals: NDArray[np.float64], errors: NDArray[np.float64], trees: Collection[int]) -> tuple[float, float]:
    """What these trees hold: the weighted mean of their totals, and its error."""
    own = sorted(trees)
    weights = 1 / np.maximum(errors[own], 1e-9) ** 2
    return float(np.average(totals[own], weights=weights)), float(1 / np.sqrt(weights.sum()))


def _also_possible(forest: CountedForest, found: _Missing) -> str:
    """Beside the target: attributes with values that have no branch, if the trees without them do not show that rows are missing. Where
    nearly all rows are, it may be every attribute that is asked about.
    """
    asked, names = _asked(forest), []
    for a, attribute in enumerate(forest.codebook.schema.attributes):
        others = [t for t in found.full if a not in asked[t]]
        if _loses_rows(attribute) and not (others and found.lack(others)):
            names.append(plain(attribute.name))
    losing = {a for a, attribute in enumerate(forest.codebook.schema.attributes) if _loses_rows(attribute)}
    if not names and found.share > NEARLY_ALL and all(asked[t] & losing for t in found.full):
        names = ["every attribute"]
    return f" or {' or '.join(names) if len(names) <= FEW else 'an attribute'} (the noisy counts do not tell which)" if names else ""


def _asked(forest: CountedForest) -> list[set[int]]:
    """The attributes that each tree splits on."""
    return [set(tree.attribute[tree.attribute >= 0].tolist()) for tree in forest.trees]


def _loses_rows(attribute: Attribute) -> bool:
    """Whether it may hold a value that has no branch."""
    return attribute.missing is None or (isinstance(attribute, Categorical) and attribute.other is None)


def _beyond_the_limit(forest: CountedForest, rows: int | None) -> str:
    """A declared number of rows may be that of the whole table, of which only some rows of each person are counted."""
    schema = forest.codebook.schema
    if schema.person is None or rows is None or rows != schema.rows:
        return ""
    return f" Or persons have more than {schema.k} rows, which are not counted: `rows` should be the number that is."


def _suspects(forest: CountedForest, found: _Missing) -> list[str]:
    """Attributes of which trees lack rows: what all these trees ask about and no other tree does; else what the worst of them asks about,
    and what others ask about alone. None where these are many.
    """
    asked, names, lacking = _asked(forest), _names(forest), found.lacking
    if not lacking:
        return []
    full = set().union(*(asked[t] for t in range(len(asked)) if t not in lacking))
    own = {t: asked[t] - full or asked[t] for t in lacking}
    common = set.intersection(*(asked[t] - full for t in lacking))
    worst = own[min(lacking, key=lambda t: found.totals[t])]
    if 0 < len(common) <= FEW:
        return [names[a] for a in sorted(common)]
    return [names[a] for a in sorted(worst.union(*(each for each in own.values() if len(each) == 1)))] if len(worst) <= FEW else []


def _names(forest: CountedForest) -> list[str]:
    return [plain(name) for name in forest.codebook.schema.names]
