"""A released tree as a picture (SVG) or as indented text, with the noise on every number.

Post-processing: it costs nothing. A picture shows at most about forty boxes. Where a tree has more, the branches with
the most released support are drawn and the rest is counted in "+12 more branches".
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.inference.rules import Removed, confidences
from hedgerow.inference.text import count_with_error, plain, share_with_error, values_in_words
from hedgerow.plots.svg import (
    BOLD,
    OTHER,
    PALETTE,
    bar,
    document,
    escape,
    fit,
    label,
    scale_for,
    text_width,
)
from hedgerow.plots.svg import bars_svg as bars_svg
from hedgerow.plots.svg import confusion_svg as confusion_svg
from hedgerow.trees.forest import NODES, CountedForest

MAX_BOXES = 40
MAX_LINES = 200
_ROOT_BRANCHES, _INNER_BRANCHES = 10, 5  # drawn below one node of a tree that is too large to draw whole
_BARS = 5  # classes in one box


# ---------------------------------------------------------------- what is shown


@dataclass
class Shown:
    """A node to be shown. `hidden` children are left out, `in_noise` of them because pruning removes them."""

    node: int
    depth: int
    branch: str  # the value that leads here, in words
    children: list[Shown] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)
    in_noise: int = 0
    cut: bool = False  # the tree asks on, the picture does not


class _View:
    """One tree of a forest with the numbers of its nodes."""

    def __init__(self, forest: CountedForest, tree: int, removed: Removed) -> None:
        if isinstance(tree, bool) or not hasattr(tree, "__index__") or not 0 <= int(tree) < len(forest.trees):
            raise PlanError(f"tree: got {tree!r}; expected a whole number from 0 to {len(forest.trees) - 1}.")
        self.forest, self.number = forest, int(tree)
        self.tree, self.codebook = forest.trees[self.number], forest.codebook
        self.counts = forest.node_counts[self.number]
        self.support = self.counts.sum(axis=1)
        self.sd = forest.node_noise_sd(self.number)
        self.classes = [plain(value) for value in self.codebook.schema.target.classes]
        self.removed = np.zeros(self.tree.n_nodes, dtype=bool) if removed is None else removed[self.number]

    def name(self, node: int) -> str:
        return plain(self.codebook.schema.names[self.tree.attribute[node]])

    def rows(self, nodes: list[int]) -> str:
        """The support of disjoint nodes together, with its noise."""
        error = math.sqrt(float((self.sd[nodes] ** 2).sum()) * len(self.classes))
        return count_with_error(float(self.support[nodes].sum()), error) + " rows"

    def says(self, node: int) -> tuple[str, str]:
        """The majority class and its confidence."""
        p, error, best = (array[0] for array in confidences(self.forest, self.number, np.array([node])))
        return self.classes[int(best)], share_with_error(float(p), float(error))

    def classes_to_show(self, node: int) -> list[int]:
        """All classes in their order, or the largest few where there are many."""
        if len(self.classes) <= _BARS:
            return list(range(len(self.classes)))
        return [int(c) for c in np.argsort(-self.counts[node], kind="stable")[:_BARS]]

    def counts_text(self, node: int) -> str:
        """ "none 120 ± 15, cardiac 35 ± 15", and how many classes are left out."""
        shown, sd = self.classes_to_show(node), float(self.sd[node])
        words = [f"{self.classes[c]} {count_with_error(float(self.counts[node, c]), sd)}" for c in shown]
        rest = len(self.classes) - len(shown)
        return ", ".join(words + [f"{rest} more classes"] * (rest > 0))

    def children(self, node: int) -> list[int]:
        """The distinct children in the order of their first codes."""
        if self.tree.attribute[node] < 0:
            return []
        return list(dict.fromkeys(int(child) for child in self.tree.children(node) if child >= 0))

    def branch(self, node: int, child: int) -> str:
        codes = [int(code) for code in np.flatnonzero(self.tree.children(node) == child)]
        return values_in_words(self.codebook, int(self.tree.attribute[node]), codes)

    def outline(self, max_depth: int, max_shown: int) -> Shown:
        """The nodes to show, best supported first, so that there are never more than `max_shown`."""
        whole = int(((self.tree.depth <= max_depth) & ~self.removed).sum()) <= max_shown
        root = Shown(0, 0, "")
        left = max_shown - 1
        waiting = [(-int(self.support[0]), 0, root)]
        while waiting:
            _, _, shown = heapq.heappop(waiting)
            every = self.children(shown.node)
            kept = [child for child in every if not self.removed[child]]
            if not kept:
                continue
            most = len(kept) if whole else _ROOT_BRANCHES if shown.depth == 0 else _INNER_BRANCHES
            best = sorted(kept, key=lambda child: (-int(self.support[child]), child))[:most]
            needed = len(best) + (len(every) > len(best))
            if shown.depth >= max_depth or (needed > left and not whole):
                shown.cut = True
                continue
            left -= needed
            shown.hidden = [child for child in every if child not in set(best)]
            shown.in_noise = len(every) - len(kept)
            for child in every:
                if child in best:
                    below = Shown(child, shown.depth + 1, self.branch(shown.node, child))
                    shown.children.append(below)
                    heapq.heappush(waiting, (-int(self.support[child]), child, below))
        return root

    def hidden_text(self, shown: Shown) -> str:
        if shown.in_noise == len(shown.hidden):
            return f"+{len(shown.hidden)} lost in noise"
        return f"+{len(shown.hidden)} more " + ("branch" if len(shown.hidden) == 1 else "branches")


def _depth(max_depth: int) -> int:
    if isinstance(max_depth, bool) or not hasattr(max_depth, "__index__") or int(max_depth) < 0:
        raise PlanError(f"max_depth: got {max_depth!r}; expected a whole number of at least 0.")
    return int(max_depth)


# ---------------------------------------------------------------- text


def tree_text(forest: CountedForest, tree: int, max_depth: int = 3, *, max_nodes: int = MAX_LINES, removed: Removed = None) -> str:
    """The tree as indented lines, without the nodes that are `removed` (for each tree, see `inference/rules.py`).

    `tree` is numbered from 0; the heading counts from 1.
    """
    view = _View(forest, tree, removed)
    root = view.outline(_depth(max_depth), max_nodes)
    lines = [f"Tree {view.number + 1} of {len(forest.trees)}: {_about_counts(view)}", _line(view, root)]
    _add_lines(view, root, "", lines)
    return "\n".join(lines)


def _about_counts(view: _View) -> str:
    kept = np.flatnonzero(~view.removed)
    number = len(kept) - len(np.unique(view.tree.parent[kept[1:]]))  # kept[0] is the root
    leaves = f"{number:,} {'leaf' if number == 1 else 'leaves'}"
    if view.removed.any():
        leaves = f"{number:,} of {len(view.tree.leaves):,} leaves after pruning"
    height = int(view.tree.depth[kept].max())
    noise = "± is the standard deviation of the noise" if view.forest.noisy else "exact counts, no noise"
    apart = ", every node was counted by itself" if view.forest.measured == NODES and view.forest.noisy else ""
    return f"{leaves}, height {height}; {noise}{apart}"


def _line(view: _View, shown: Shown) -> str:
    lead = f"{shown.branch}: " if shown.branch else ""
    if shown.children:
        return f"{lead}{view.name(shown.node)}?  ({view.rows([shown.node])})"
    label_, sure = view.says(shown.node)
    asks_on = f"  … asks on: {view.name(shown.node)}?" if shown.cut else ""
    return f"{lead}{label_}, confidence {sure}  [{view.counts_text(shown.node)}]{asks_on}"


def _add_lines(view: _View, shown: Shown, indent: str, lines: list[str]) -> None:
    for i, child in enumerate(shown.children):
        last = i == len(shown.children) - 1 and not shown.hidden
        lines.append(indent + ("└─ " if last else "├─ ") + _line(view, child))
        _add_lines(view, child, indent + ("   " if last else "│  "), lines)
    if shown.hidden:
        lines.append(f"{indent}└─ {view.hidden_text(shown)}  ({view.rows(shown.hidden)})")


# ---------------------------------------------------------------- picture

_MARGIN, _GAP_BETWEEN = 20.0, 10.0


def tree_svg(forest: CountedForest, tree: int, max_depth: int = 3, *, max_boxes: int = MAX_BOXES, removed: Removed = None) -> str:
    """The tree from left to right as a standalone SVG. `tree` is numbered from 0; the heading counts from 1.

    Boxes that ask show the attribute; the others show the majority class, the support, and a bar for each class with a
    whisker of ± 1 standard deviation of its noise, each box to its own scale.
    """
    view = _View(forest, tree, removed)
    picture = _Picture(view, view.outline(_depth(max_depth), max_boxes))
    return picture.svg()


class _Picture:
    def __init__(self, view: _View, root: Shown) -> None:
        self.view, self.root = view, root
        self.height = max(42.0, 12.0 + 10.0 * min(_BARS, len(view.classes)))
        leaves = [shown.node for shown in _all(root) if not shown.children]
        says = max((text_width(view.says(node)[0], 12.5, bold=True) for node in leaves), default=0)
        rows = max((text_width(view.rows([node]).removesuffix(" rows"), 11.5) for node in leaves), default=0)
        self.words = min(max(says, rows, 74.0), 140.0)  # a box: the words of a leaf, then its bars
        self.box = self.words + 98
        labels = [child.branch for shown in _all(root) for child in shown.children]
        self.gap = 34 + min(max((text_width(words, 11.5) for words in labels), default=40), 130)
        columns = 1 + max(shown.depth + bool(shown.hidden) for shown in _all(root))
        self.width = max(620.0, 2 * _MARGIN + columns * self.box + (columns - 1) * self.gap + 14)
        largest = np.argsort(-view.counts[0], kind="stable")
        several = largest if len(view.classes) > len(PALETTE) else np.arange(len(view.classes))
        self.colour = {int(c): PALETTE[i] for i, c in enumerate(several[: len(PALETTE)])}
        self.parts: list[str] = []
        self.cut = any(shown.cut for shown in _all(root))

    def svg(self) -> str:
        view = self.view
        title = f"Tree {view.number + 1} of {len(view.forest.trees)}"
        self.parts.append(label(_MARGIN, 30, title, 16, more=BOLD))
        self.parts.append(label(_MARGIN, 50, f"{_about_counts(view)}.", 12, "hw-soft"))
        bottom = self._legend(74)
        self.next_y = bottom + 16
        self._place(self.root)
        foot = "Bars are class counts, each box to its own scale"
        foot += "; whiskers show ± 1 standard deviation of the noise." if view.forest.noisy else "."
        self.parts.append(label(_MARGIN, self.next_y + 12, foot, 11.5, "hw-soft"))
        if self.cut:
            self.parts.append(label(_MARGIN, self.next_y + 30, "⋯ the tree asks on there.", 11.5, "hw-soft"))
        height = self.next_y + (46 if self.cut else 28)
        words = f"{_about_counts(view)}. " + _first_words(view, self.root)
        return document(self.width, height, title, words, self.parts)

    def _legend(self, y: float) -> float:
        x = _MARGIN
        entries = [(self.view.classes[c], colour) for c, colour in sorted(self.colour.items())]
        if len(entries) < len(self.view.classes):
            entries.append(("other classes", OTHER))
        for name, colour in entries:
            shown = fit(name, 180, 12)
            wide = 22 + text_width(shown, 12) + 14
            if x > _MARGIN and x + wide > self.width - _MARGIN:
                x, y = _MARGIN, y + 20
            self.parts.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12" rx="2" fill="{colour}"/>')
            self.parts.append(label(x + 18, y, shown))
            x += wide
        return y

    def _place(self, shown: Shown) -> float:
        """Draw a node and all below it from top to bottom; returns the middle of its box."""
        x = _MARGIN + shown.depth * (self.box + self.gap)
        if not shown.children:
            middle = self._next_row()
            self._leaf(shown, x, middle)
            return middle
        middles = [self._place(child) for child in shown.children]
        beyond = x + self.box + self.gap
        if shown.hidden:
            middles.append(self._next_row())
            self._hidden(shown, beyond, middles[-1])
        middle = middles[0]  # not the middle of them all: a tall picture is read from its top left
        words = [child.branch for child in shown.children] + [""] * bool(shown.hidden)
        for end, word in zip(middles, words, strict=True):
            self._edge(x + self.box, middle, beyond, end, word)
        self._question(shown, x, middle)
        return middle

    def _next_row(self) -> float:
        middle = self.next_y + self.height / 2
        self.next_y += self.height + _GAP_BETWEEN
        return middle

    def _edge(self, x: float, y: float, to_x: float, to_y: float, words: str) -> None:
        turn = x + 12
        bend = min(6.0, abs(to_y - y) / 2)
        down = bend if to_y > y else -bend
        path = f"M{x:.1f} {y:.1f}H{turn - bend:.1f}Q{turn:.1f} {y:.1f} {turn:.1f} {y + down:.1f}V{to_y - down:.1f}"
        path += f"Q{turn:.1f} {to_y:.1f} {turn + bend:.1f} {to_y:.1f}H{to_x:.1f}"
        if abs(to_y - y) < 0.5:
            path = f"M{x:.1f} {y:.1f}H{to_x:.1f}"
        self.parts.append(f'<path class="hw-line" d="{path}"/>')
        if words:
            shown = label(turn + 7, to_y - 5, fit(words, self.gap - 24, 11.5), 11.5)
            self.parts.append(f"<g><title>{escape(words)}</title>{shown}</g>")

    def _box(self, x: float, middle: float, kind: str, tip: str, more: str = "") -> None:
        self.parts.append(
            f"<g><title>{escape(tip)}</title>"
            f'<rect class="{kind}" x="{x:.1f}" y="{middle - self.height / 2:.1f}" '
            f'width="{self.box:.0f}" height="{self.height:.0f}" rx="7"{more}/>'
        )

    def _question(self, shown: Shown, x: float, middle: float) -> None:
        name, rows = self.view.name(shown.node) + "?", self.view.rows([shown.node])
        self._box(x, middle, "hw-ask", f"{name} {rows}")
        self.parts += [
            label(x + 12, middle - 3, fit(name, self.box - 24, 13, bold=True), 13, more=BOLD),
            label(x + 12, middle + 14, fit(rows, self.box - 24, 11.5), 11.5, "hw-soft"),
            "</g>",
        ]

    def _hidden(self, shown: Shown, x: float, middle: float) -> None:
        text, rows = self.view.hidden_text(shown), self.view.rows(shown.hidden)
        if 0 < shown.in_noise < len(shown.hidden):
            rows = f"{shown.in_noise} of them lost in noise"
        self._box(x, middle, "hw-more", f"{text}: {rows}", ' stroke-dasharray="4 3"')
        self.parts += [
            label(x + 12, middle - 3, fit(text, self.box - 20, 12), 12),
            label(x + 12, middle + 14, fit(rows, self.box - 20, 11.5), 11.5, "hw-soft"),
            "</g>",
        ]

    def _leaf(self, shown: Shown, x: float, middle: float) -> None:
        view, node = self.view, shown.node
        says, sure = view.says(node)
        rows = view.rows([node])
        sd = float(view.sd[node])
        order = view.classes_to_show(node)
        self._box(x, middle, "hw-leaf", f"{says}, confidence {sure}; {rows}: {view.counts_text(node)}")
        self.parts += [
            label(x + 10, middle - 3, fit(says, self.words, 12.5, bold=True), 12.5, more=BOLD),
            label(x + 10, middle + 13, fit(rows.removesuffix(" rows"), self.words, 11.5), 11.5, "hw-soft"),
        ]
        values = view.counts[node][order].astype(np.float64)
        place = scale_for(values, np.full(len(order), sd), x + self.words + 18, x + self.box - 10)
        top = middle - 10.0 * len(order) / 2
        for i, c in enumerate(order):
            self.parts.append(bar(place, float(values[i]), sd, top + 10 * i + 5, 7, self.colour.get(c, OTHER)))
        zero = place(0)
        ends = f'y1="{top - 1:.1f}" y2="{top + 10 * len(order) + 1:.1f}"'
        self.parts.append(f'<line class="hw-axis" x1="{zero:.1f}" x2="{zero:.1f}" {ends}/></g>')
        if shown.cut:
            self.parts.append(label(x + self.box + 4, middle + 5, "⋯", 14, "hw-soft"))


def _all(root: Shown) -> list[Shown]:
    found, waiting = [], [root]
    while waiting:
        shown = waiting.pop()
        found.append(shown)
        waiting += shown.children
    return found


def _first_words(view: _View, root: Shown) -> str:
    """The first question and where it leads, for those who cannot see the picture."""
    if not root.children:
        says, sure = view.says(0)
        return f"It has no split: {says}, confidence {sure}."
    leads = ", ".join(child.branch for child in root.children)
    return f"It first splits on {view.name(0)}: {leads}."
