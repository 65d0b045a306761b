"""What each attribute of an additive forest does, value by value. It costs nothing.

The **effect** of a value v of attribute j is the mean of what j adds (`parts.py`) over the rest of the row: down the top tree, a node
that asks about j sends everything to the child of v, any other node sends on by the released rows of its children. Effects are
centred: the mean over the classes is 0. Their errors are what the noise may have done (`effect_noise.py`) and the draw of boosted trees
(`boosted_parts.py`), not the chance of who is in the table, and not that a value with few rows is drawn towards the others
(`evidence.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.boosted_parts import beyond_noise, settled_variance
from hedgerow.inference.effect_noise import centred, floor_variance, mean_variance, weight_variance
from hedgerow.inference.evidence import believed, chance_variance
from hedgerow.inference.parts import Parts
from hedgerow.inference.parts import contributions as contributions
from hedgerow.inference.parts import score_errors as score_errors
from hedgerow.inference.tables import Floats, rows_of_ranges
from hedgerow.inference.text import plain, share_text, values_in_words
from hedgerow.schema.attributes import Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.few_rows import few_margins
from hedgerow.trees.oblivious import ObliviousTree
from hedgerow.trees.tree import Tree

BY_CHANCE, ONE_BY_CHANCE = 0.03, 0.005  # how often all values of an attribute that says nothing, or one of them, may look as if it did
MOSTLY = 0.5  # of a score that is its own rows'; below it stands for the other values
WEIGHED = 0.95  # of what its counts say: below, it is told
LISTED = 3  # values that need no count before them


@dataclass(frozen=True, eq=False, repr=False)
class Effect:
    """What one attribute does, value by value.

    attribute:   its name
    values:      the values in words; values that the forest treats alike are one
    classes:     the declared classes, in words
    rows:        the share of rows with each value, from noisy counts: of a category as far as
                 it differs from even ones by more than noise, of a range of a number as counted  (values,)
    scores:      what the value adds to each class, on average; the mean over the classes is 0    (values, classes)
    errors:      standard errors that the noise gives the scores                                  (values, classes)
    shift:       the part of them that all values have alike: scores stand against their mean over
                 the noisy shares of rows                                                         (classes,)
    of_weight:   the part of them that makes all effects larger or smaller together: `weight` is
                 computed from noisy counts                                                       (values, classes)
    class_rows:  the share of rows of each class, from noisy counts                               (classes,)
    importance:  the attribute's share in what all attributes add
    importance_noise:  the share that an attribute with these errors would have by noise alone
    cuts:        of a numeric attribute the numbers between its ranges; the values after the last range have no number
    cut_texts:   the same for people, where a date is a date
    row_errors:  standard errors that the noise gives `rows`; NaN where the attribute was not
                 counted, and rows are taken as even                                              (values,)
    most_rows:   the share of rows of the counted ranges that a value of a number is part of: how
                 many of these it has is not known, and `rows` takes them as evenly spread        (values,)
    chance:      standard errors that who is in the table, and who is not, gives the scores       (values, classes)
    believed:    how much of what the rows with a value say is in its score; the rest is what the
                 other values say                                                                 (values, classes)
    unknown:     the share of rows that have no declared value, where the noisy counts show it: `rows` is then of the others
    unknown_error:  its standard error, by the noise
    weight:      how much of what its own counts say is added, before all scores are scaled: less than 1 where attributes repeat each
                 other, or where a reading at less than full strength was chosen; of a joint fit 1
    """

    attribute: str
    values: tuple[str, ...]
    classes: tuple[str, ...]
    rows: Floats
    scores: Floats
    errors: Floats
    class_rows: Floats
    importance: float
    cuts: tuple[float, ...] | None = None
    cut_texts: tuple[str, ...] = ()
    importance_noise: float = 0.0
    row_errors: Floats | None = None
    most_rows: Floats | None = None
    chance: Floats | None = None
    believed: Floats | None = None
    unknown: float = 0.0
    shift: Floats | None = None
    weight: float = 1.0
    of_weight: Floats | None = None
    unknown_error: float = 0.0

    @property
    def rows_note(self) -> str:
        """How far the shares of rows may be off: "shares of rows ± 2 % to 5 %"; "" where they are exact."""
        if self.row_errors is None or not self.row_errors.any():
            return ""
        if np.isnan(self.row_errors).any():
            return "shares of rows were not counted, and are taken as even"
        errors, together = self.row_errors[~self._part], '"at most": counted together with the ranges beside it'
        unknown = (
            f"about {self.unknown:.0%} ± {max(self.unknown_error, 0.01):.0%} of the rows have no declared value, shares are of the others"
        )
        said = [unknown] if self.unknown else []
        if errors.size:
            texts = [f"{max(100 * error, 0.1):.{0 if error >= 0.0095 else 1}f} %" for error in (errors.min(), errors.max())]
            said.append(f"shares of rows ± {' to '.join(dict.fromkeys(texts))}")
        return "; ".join([*said, together] if self._part.any() else said)

    @property
    def _part(self) -> NDArray[np.bool_]:
        """(values,): whether a value is a part of a counted range."""
        return np.zeros(len(self.values), dtype=bool) if self.most_rows is None else self.most_rows > self.rows + 1e-9

    def share_of(self, value: int) -> str:
        """ "27 %" of rows; "at most 27 %" of a part of a counted range."""
        if self.most_rows is not None and self._part[value]:
            return f"at most {share_text(float(self.most_rows[value]))}"
        return share_text(float(self.rows[value]))

    @property
    def above_noise(self) -> bool:
        """Whether it says more than noise, and the chance of who is in the table, would make it say.

        Each value is judged by its own errors, so that one of which nothing is known does not hide the others: all together by χ², weighted
        by their rows, and each that has rows enough by itself, further away where there are many. What all values have alike makes none of
        them differ from the others, and a weight does not make something of nothing.
        """
        if not self.errors.any():
            return self.importance > 0
        chance, shift, of_weight = (0.0 if part is None else part for part in (self.chance, self.shift, self.of_weight))
        own = np.maximum(self.errors**2 - shift**2 - of_weight**2, 0.0)
        away = np.abs(self.scores) / np.maximum(np.sqrt(own + chance**2), 1e-6)
        weight, classes = self.rows / self.rows.sum(), len(self.classes)
        values = 1 / float(weight @ weight)  # so many with even rows; their scores add up to about 0, and so do those of the classes
        if weight @ (away**2).mean(axis=1) > _largest_mean_square(max(values - 1, 1.0) * (classes - 1)):
            return True
        clear = away[~self.few_rows]
        numbers = clear.size if classes > 2 else len(clear)
        return bool(numbers and clear.max() > NormalDist().inv_cdf(1 - ONE_BY_CHANCE / (2 * numbers)))

    @property
    def few_rows(self) -> NDArray[np.bool_]:
        """(values,): whether a value has too few rows to tell: most of its score is that of the other values, and it may be wrong by more
        than its error. Of two classes the rarer one decides; of more, both that which it speaks for most and that which it speaks against
        most must be so: of a very rare class hardly any value has rows enough, which says nothing of the others.
        """
        if self.believed is None or not self.scores.any():
            return np.zeros(len(self.values), dtype=bool)
        own = np.take_along_axis(self.believed, np.stack([self.scores.argmax(axis=1), self.scores.argmin(axis=1)], axis=1), axis=1)
        return np.asarray((own.min(axis=1) if len(self.classes) == 2 else own.max(axis=1)) < MOSTLY)

    @property
    def noise_size(self) -> float:
        """What `size` would be, on average, if there were no effect."""
        return float(self.rows @ self.errors.mean(axis=1)) * math.sqrt(2 / math.pi)

    def __repr__(self) -> str:
        return f"<Effect {about(self)}, {len(self.values):,} values>"

    def __str__(self) -> str:
        from hedgerow.plots.effect_text import effect_text

        return effect_text(self)

    @property
    def size(self) -> float:
        """Σ_v rows_v · mean_c |score_vc|."""
        return float(self.rows @ np.abs(self.scores).mean(axis=1))

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from hedgerow.plots.notebook import effects_html  # see pyproject.toml

        return effects_html([self])

    @property
    def log_odds(self) -> tuple[Floats, Floats]:
        """Of two classes: how much each value adds to the log-odds of the second one, and the standard errors."""
        return 2 * self.scores[:, 1], 2 * self.errors[:, 1]


class Effects(tuple[Effect, ...]):
    """Effects that a notebook draws, the first few. By number, or by the name of an attribute."""

    __slots__ = ()

    @overload
    def __getitem__(self, which: SupportsIndex | str, /) -> Effect: ...
    @overload
    def __getitem__(self, which: slice, /) -> tuple[Effect, ...]: ...
    def __getitem__(self, which: Any, /) -> Any:
        if not isinstance(which, str):
            return super().__getitem__(which)
        found = next((effect for effect in self if effect.attribute == which), None)
        if found is None:
            names = ", ".join(plain(effect.attribute) for effect in self)
            raise PlanError(f"effects: got the name {which!r}; expected one of {names or 'none: no attribute was measured'}.")
        return found

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def _repr_html_(self) -> str:
        """How a notebook shows them."""
        from hedgerow.plots.notebook import effects_html

        return effects_html(self)


def effects(forest: AdditiveForest) -> Effects:
    """The effects of all measured attributes, the most important first."""
    parts = Parts(forest)
    found = [_effect(parts, j) for j in parts.scores]
    total = sum(effect.size for effect in found)
    shared = [_with_importance(effect, max(total, 1e-300)) for effect in found]
    return Effects(sorted(shared, key=lambda effect: -effect.importance))


def effect_importances(forest: AdditiveForest) -> dict[str, float]:
    """The share of each attribute in what all of them add, by name: Σ_v rows_v · mean_c |effect_vc|, made to add up to 1."""
    shares = dict.fromkeys(forest.tables.codebook.schema.names, 0.0)
    return shares | {effect.attribute: effect.importance for effect in effects(forest)}


def effect_named(found: tuple[Effect, ...], name: str, names: tuple[str, ...]) -> Effect:
    """The effect of one attribute; a name that is not declared, or was not measured, is refused."""
    if name not in names:
        raise PlanError(f"attribute: got {name!r}; expected one of {', '.join(map(plain, names))}.")
    for effect in found:
        if effect.attribute == name:
            return effect
    raise PlanError(
        f"attribute {name!r} was not measured by this forest: it has no effect on any prediction. Measured are "
        f"{', '.join(plain(effect.attribute) for effect in found)}."
    )


def _effect(parts: Parts, j: int) -> Effect:
    tables, codebook = parts.forest.tables, parts.forest.tables.codebook
    groups = _that_hold_values(codebook, j, alike(parts, j))
    first = [codes[0] for codes in groups]
    weights = _rest(tables.layout.top, tables.node_rows, j, first)
    scores = np.zeros((len(groups), codebook.n_classes))
    reached, met = np.zeros((len(groups), 1)), []
    for node in np.flatnonzero(weights.any(axis=0)).tolist():
        rows, weight = _rows_at(tables.layout.top, node, j, first), weights[:, node, None]
        if rows is not None:
            scores += weight * few_margins(parts.typical[j], rows)
            reached += weight
            met.append((rows, weights[:, node]))
    reached = np.maximum(reached, 1e-300)
    shares = _share_of_rows(parts.forest, j, groups)
    if j in parts.steps:
        spread = settled_variance(parts.steps[j], met[0][0], shares)
    else:
        spread = mean_variance(parts.typical_variances[j], met, reached, floor_variance(parts.forest, j)[first])
    if j in parts.boosted:
        spread += beyond_noise(parts.boosted[j], len(parts.forest.correction.boosted_trees), met[0][0])
    found = centred(scores / reached)
    shift = np.zeros(codebook.n_classes)
    if parts.forest.joint_noise and j in tables.attributes:
        shift = _share_noise(parts.forest, j, groups) ** 2 @ found**2
    attribute = codebook.schema.attributes[j]
    cells = codebook.numeric_cells(j)
    edges = attribute.cell_edges(codebook.bins) if isinstance(attribute, Numeric) else ()
    return Effect(
        attribute.name,
        tuple(_in_words(codebook, j, codes) for codes in groups),
        tuple(plain(value) for value in codebook.schema.target.classes),
        shares,
        found,
        np.sqrt(spread + shift),
        tables.pi,
        0.0,
        tuple(float(edges[code]) for code in first if 0 < code < cells) if cells else None,
        tuple(codebook.edge_texts[j][code] for code in first if 0 < code < cells),
        row_errors=_share_errors(parts.forest, j, groups),
        most_rows=_most_rows(parts.forest, j, groups),
        chance=np.sqrt(chance_variance(parts.forest, j)[first]),
        believed=believed(parts.forest, j)[first],
        unknown=tables.unknown.get(j, 0.0),
        unknown_error=tables.unknown_errors.get(j, 0.0),
        shift=np.sqrt(shift),
        weight=parts.forest.weights.get(j, 1.0),
        of_weight=np.sqrt(weight_variance(parts.forest, j)[first]),
    )


def _in_words(codebook: Codebook, j: int, codes: list[int]) -> str:
    """As in rules; of a long list, such as that of all rare values, first how many they are."""
    words = values_in_words(codebook, j, codes)
    several = codes[0] >= codebook.numeric_cells(j) and len(codes) > LISTED
    return f"{len(codes):,} values: {words}" if several else words


def _with_importance(effect: Effect, total: float) -> Effect:
    return replace(effect, importance=effect.size / total, importance_noise=effect.noise_size / total)


def _largest_mean_square(freedom: float) -> float:
    """The mean of so many squared standard normal numbers that chance alone rarely exceeds (Wilson and Hilferty)."""
    part = 2 / (9 * freedom)
    return float((1 - part + NormalDist().inv_cdf(1 - BY_CHANCE) * math.sqrt(part)) ** 3)


def about(effect: Effect) -> str:
    """ "age: 16 % of what the attributes say"; of one that may be noise alone, that too, and of one that is not read at full strength."""
    said = [] if effect.above_noise or not effect.importance else ["within the noise"]
    said += [f"its counts weigh {share_text(effect.weight)}"] if effect.weight < WEIGHED else []
    more = f" ({', '.join(said)})" if said else ""
    return f"{plain(effect.attribute)}: {share_text(effect.importance)} of what the attributes say{more}"


def alike(parts: Parts, j: int) -> list[list[int]]:
    """The codes of an attribute in groups that every tree treats alike; numeric cells only if they are neighbours."""
    codebook, tables = parts.forest.tables.codebook, parts.forest.tables
    d, cells = codebook.sizes[j], codebook.numeric_cells(j)
    signs: list[NDArray[Any]] = [tables.attributes[j].group] if j in tables.attributes else []
    others = {id(tree): tree for tree in parts.forest.correction.trees}
    for tree in (tables.layout.top, *others.values()):
        if isinstance(tree, ObliviousTree):
            signs += [answers.array[:d] for asked, answers in zip(tree.attributes, tree.answers, strict=True) if asked == j]
        else:
            signs += [tree.children(int(node)) for node in np.flatnonzero(tree.attribute == j)]
    signs.append(np.arange(d) >= cells)
    told = list(zip(*(np.asarray(sign).tolist() for sign in signs), strict=True))
    groups: dict[Any, list[int]] = {}
    run = 0
    for code in range(d):
        run += 0 < code < cells and told[code] != told[code - 1]
        groups.setdefault((told[code], run if code < cells else -1), []).append(code)
    return list(groups.values())


def _that_hold_values(codebook: Codebook, j: int, groups: list[list[int]]) -> list[list[int]]:
    """Cells that hold no whole number, where there are only such, are part of the range before them: nobody has a value there."""
    found: list[list[int]] = []
    for codes in groups:
        if all(codebook.holds_none(j, code) for code in codes):
            before = next(each for each in found if codes[0] - 1 in each)
            before += codes
        else:
            found.append(list(codes))
    return found


def _rest(top: Tree, node_rows: Floats, j: int, codes: list[int]) -> Floats:
    """(codes, nodes of the top tree): where a row with that code of j ends, if the rest of it is spread as was released."""
    weight = np.zeros((len(codes), top.n_nodes))
    weight[:, 0] = 1.0
    below = np.zeros(top.n_nodes)
    np.add.at(below, top.parent[1:], node_rows[1:])
    for nodes in top.levels[1:]:
        for node in nodes.tolist():
            up = int(top.parent[node])
            if top.attribute[up] == j:
                share = (top.children(up)[codes] == node).astype(np.float64)
            else:
                share = np.full(len(codes), node_rows[node] / below[up])
            weight[:, node] = weight[:, up] * share
    for node in np.flatnonzero(top.attribute >= 0):  # nobody ends at a question but where it has no branch for the code
        weight[:, node] *= (top.children(int(node))[codes] < 0) if top.attribute[node] == j else 0.0
    return weight


def _rows_at(top: Tree, node: int, j: int, codes: list[int]) -> NDArray[np.uint16] | None:
    """One row for each code of j, that ends at that node of the top tree if its j can; None for a node that no row reaches."""
    ways: dict[int, set[int]] = {}
    for attribute, lead in top.path(node):
        ways[attribute] = ways.get(attribute, set(lead)) & set(lead)  # a number may be asked about twice
    if not all(ways.values()):
        return None
    row = np.zeros(len(top.sizes), dtype=np.uint16)
    for attribute, possible in ways.items():
        row[attribute] = min(possible)
    rows = np.tile(row, (len(codes), 1))
    rows[:, j] = codes
    return rows


def _share_of_rows(forest: AdditiveForest, j: int, groups: list[list[int]]) -> Floats:
    if j not in forest.tables.attributes:
        return np.full(len(groups), 1 / len(groups))
    by_code = _shown(forest, j, groups)
    return np.array([by_code[codes].sum() for codes in groups])


def _shown(forest: AdditiveForest, j: int, groups: list[list[int]]) -> Floats:
    """(codes,): the shares that are shown. Of a number as its ranges were counted: what predictions are made from is drawn to even ones,
    and makes large ones too small.
    """
    if not forest.tables.codebook.numeric_cells(j):
        return forest.shares_of_codes(j)
    by_code, n = _counted(forest, j), _rows_with_values(forest, j)
    rows = rows_of_ranges(np.array([by_code[codes].sum() for codes in groups]), n * _share_noise(forest, j, groups), n)
    found = np.maximum(by_code, 1e-9)
    for codes, share in zip(groups, rows / rows.sum(), strict=True):
        found[codes] *= share / found[codes].sum()
    return np.asarray(found)


def _counted(forest: AdditiveForest, j: int) -> Floats:
    """(codes,): noisy rows of each, of codes that were counted together the mean."""
    branch = forest.tables.layout.branches(j)
    return np.asarray((forest.tables.tables[j].sum(axis=(0, 2)) / np.bincount(branch))[branch])


def _rows_with_values(forest: AdditiveForest, j: int) -> float:
    return max(forest.tables.n * (1 - forest.tables.unknown.get(j, 0.0)), 1.0)


def _share_noise(forest: AdditiveForest, j: int, groups: list[list[int]]) -> Floats:
    """Of m of d counted branches, whose noises are made to add up to that of all rows: sd·√(m·(1 − m/d)). That of a category, which was
    drawn to even ones, is a little less off.
    """
    tables = forest.tables
    branch = tables.layout.branches(j)
    m, d = np.array([len(np.unique(branch[codes])) for codes in groups]), int(branch.max()) + 1
    sd = tables.noise(j) * math.sqrt(tables.codebook.n_classes)
    return np.asarray(sd * np.sqrt(m * (1 - m / d)) / _rows_with_values(forest, j))


def _share_errors(forest: AdditiveForest, j: int, groups: list[list[int]]) -> Floats:
    """Their noise, with that of the number of all rows, and of a part of a branch that all of its rows may be there, or none."""
    if j not in forest.tables.attributes:
        return np.full(len(groups), np.nan)
    noise, rows, most = _share_noise(forest, j, groups), _share_of_rows(forest, j, groups), _most_rows(forest, j, groups)
    of_all = rows * forest.tables.total_sd * math.sqrt(forest.tables.codebook.n_classes) / _rows_with_values(forest, j)
    unknown = np.where(most > rows + 1e-9, np.maximum(rows, most - rows), 0.0)
    return np.asarray(np.minimum(np.sqrt(noise**2 + of_all**2 + unknown**2), 1.0))


def _most_rows(forest: AdditiveForest, j: int, groups: list[list[int]]) -> Floats:
    """Of a number, the shares of all codes that are counted with one of these."""
    tables = forest.tables
    if j not in tables.attributes or not tables.codebook.numeric_cells(j):
        return _share_of_rows(forest, j, groups)
    branch = tables.layout.branches(j)
    of_branch = np.bincount(branch, _shown(forest, j, groups))
    return np.array([of_branch[np.unique(branch[codes])].sum() for codes in groups])
