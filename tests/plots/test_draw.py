"""Pictures are well-formed, escaped, of bounded size, and their whiskers stand where the noise says."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from fractions import Fraction

import numpy as np
import pytest

from hedgerow.errors import PlanError
from hedgerow.inference.confidence import unreliable
from hedgerow.inference.prune import pruned_nodes
from hedgerow.plots.draw import bars_svg, confusion_svg, tree_svg, tree_text
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.trees.forest import NODES, CountedForest
from hedgerow.trees.tree import TreeBuilder

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("1")</script>]]>&\'\x1b[31m\u202e\x00'


def parse(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert root.tag == SVG + "svg"
    assert root.find(SVG + "title").text
    assert root.find(SVG + "desc").text
    assert not re.search(r"https?:", svg.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "text", "g", "path", "line",
    }  # fmt: skip
    return root


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(SVG + "text")]


def wide_forest(names=("age", "word"), classes=("no", "yes"), values=30, noise=(Fraction(2),)) -> CountedForest:
    """word (30 values) at the root, age (4 cells) below each."""
    schema = Schema([Numeric(names[0], 0, 80), Categorical(names[1], tuple(f"v{i}" for i in range(values)))], Target("y", classes))
    book = Codebook(schema, 4)
    builder = TreeBuilder(book.sizes)
    for child in builder.split(0, 1):
        builder.split(child, 0)
    tree = builder.build()
    counts = np.random.default_rng(0).integers(0, 90, (len(tree.leaves), len(classes)))
    return CountedForest(book, (tree,), (counts,), noise)


def stump(counts, noise=(Fraction(3),), classes=("no", "yes"), name="colour", values=("red", "blue")) -> CountedForest:
    book = Codebook(Schema([Categorical(name, values)], Target("y", classes)))
    builder = TreeBuilder(book.sizes)
    builder.split(0, 0)
    return CountedForest(book, (builder.build(),), (np.array(counts),), noise)


def test_tree_text():
    forest = stump([[120, -4], [10, 1500]], (Fraction(3),))
    sd = forest.leaf_noise_sd
    assert f"{sd:.2g}" == "4.2"
    assert tree_text(forest, 0).split("\n") == [
        "Tree 1 of 1: 2 leaves, height 1; ± is the standard deviation of the noise",
        "colour?  (1,626 ± 8.4 rows)",
        "├─ red: no, confidence 100 % ± 4 %  [no 120 ± 4.2, yes −4 ± 4.2]",
        "└─ blue: yes, confidence 99.3 % ± 0.3 %  [no 10 ± 4.2, yes 1,500 ± 4.2]",
    ]
    cut = tree_text(forest, 0, 0).split("\n")
    assert cut[1:] == ["yes, confidence 92.0 % ± 0.3 %  [no 130 ± 6, yes 1,496 ± 6]  … asks on: colour?"]


def test_exact_counts_have_no_error():
    text = tree_text(stump([[3, 1], [0, 0]], ()), 0)
    assert "±" not in text
    assert "exact counts, no noise" in text
    assert "red: no, confidence 75 %  [no 3, yes 1]" in text
    assert 'hw-whisker" d' not in tree_svg(stump([[3, 1], [0, 0]], ()), 0)


def test_picture_shows_questions_values_and_counts():
    root = parse(tree_svg(stump([[120, -4], [10, 1500]]), 0))
    shown = texts(root)
    assert {"colour?", "red", "blue", "no", "yes", "1,626 ± 8.4 rows", "116 ± 6", "1,510 ± 6"} <= set(shown)


def test_whiskers_are_one_standard_deviation_of_the_noise():
    """Bars and whiskers share a scale, so the pixels must be in the proportions of the numbers."""
    forest = stump([[100, 40], [30, 60]])
    root = parse(tree_svg(forest, 0))
    groups = [g for g in root.iter(SVG + "g") if g.findall(SVG + "path")]
    assert len(groups) == 2
    for group, counts in zip(groups, [[100, 40], [30, 60]], strict=True):
        bars = group.findall(SVG + "rect")[1:]  # the first is the box
        for bar, path, count in zip(bars, group.findall(SVG + "path"), counts, strict=True):
            zero, width = float(bar.get("x")), float(bar.get("width"))
            low, high = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", path.get("d")).groups())
            assert (high - low) / 2 / width == pytest.approx(forest.leaf_noise_sd / count, abs=0.01)
            assert (high + low) / 2 == pytest.approx(zero + width, abs=0.11)


def test_bars_have_whiskers_of_the_given_errors():
    root = parse(bars_svg(["a", "b", "c"], [100.0, 50.0, -20.0], [10.0, 5.0, 8.0], "Rows"))
    axis = float(root.find(SVG + "line").get("x1"))
    groups = root.findall(SVG + "g")
    per_unit = float(groups[0].find(SVG + "rect").get("width")) / 100
    for group, value, error in zip(groups, [100, 50, -20], [10, 5, 8], strict=True):
        low, high = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", group.find(SVG + "path").get("d")).groups())
        assert low == pytest.approx(axis + (value - error) * per_unit, abs=0.2)
        assert high == pytest.approx(axis + (value + error) * per_unit, abs=0.2)
    assert "−20 ± 8" in texts(root)
    assert "100 ± 10" in texts(root)


def test_bars_of_shares_have_their_own_numbers():
    shown = texts(parse(bars_svg(["a", "b"], [0.9, 0.1], [0.0, 0.0], "Shares", numbers=["90 %", "10 %"])))
    assert shown == ["Shares", "a", "90 %", "b", "10 %"]


def test_wide_trees_stay_readable():
    forest = wide_forest()
    svg = tree_svg(forest, 0)
    root = parse(svg)
    boxes = [rect for rect in root.iter(SVG + "rect") if rect.get("rx") == "7"]
    assert 20 <= len(boxes) <= 40
    assert "+20 more branches" in texts(root)
    support = forest.node_counts[0].sum(axis=1)[1:31]
    best = {f"v{i}" for i in np.argsort(-support, kind="stable")[:10]}
    assert {text for text in texts(root) if re.fullmatch(r"v\d+", text)} == best
    assert "+20 more branches" in tree_text(forest, 0, max_nodes=40)
    assert "more branches" not in tree_text(forest, 0)


def test_hidden_branches_are_counted_with_their_noise():
    forest = wide_forest()
    support = forest.node_counts[0].sum(axis=1)
    hidden = np.argsort(-support[1:31], kind="stable")[10:] + 1
    error = forest.leaf_noise_sd * math.sqrt(2 * forest.leaves_below[0][hidden].sum())
    assert f"{support[hidden].sum():,} ± {error:.0f} rows" in texts(parse(tree_svg(forest, 0)))


def test_branches_that_pruning_removes_are_said_not_drawn():
    forest = stump([[500, 20], [1, 2], [300, 10]], (Fraction(10),), values=("red", "blue", "green"))
    removed = [unreliable(forest, 0, "paper")]
    picture = "\n".join(texts(parse(tree_svg(forest, 0, removed=removed))))
    for shown in (picture, tree_text(forest, 0, removed=removed)):
        assert "2 of 3 leaves after pruning, height 1" in shown
        assert "+1 lost in noise" in shown
        assert "blue" not in shown
        assert "green" in shown
    everything = stump([[1, 0], [0, 1]], (Fraction(10),))
    alone = tree_text(everything, 0, removed=[unreliable(everything, 0, "paper")])
    assert "1 of 2 leaves after pruning, height 0" in alone
    assert "colour?" not in alone  # a node with no child left is a leaf


def test_nodes_that_were_counted_by_themselves_need_not_add_up():
    """DPDF: the second question does not help, so pruning (Eq. 27) takes both its children, and the node is a leaf."""
    book = Codebook(Schema([Categorical("colour", ("red", "blue")), Categorical("size", ("s", "l"))], Target("y", ("no", "yes"))))
    builder = TreeBuilder(book.sizes)
    red, _ = builder.split(0, 0)
    builder.split(red, 1)
    counts = np.array([[500, 490], [480, 20], [10, 495], [230, 15], [240, 12]])
    forest = CountedForest(book, (builder.build(),), (counts,), (Fraction(3),), NODES)
    removed = [pruned_nodes(forest, 0)]
    assert removed[0].tolist() == [False, False, False, True, True]
    whole, pruned = tree_text(forest, 0), tree_text(forest, 0, removed=removed)
    assert "every node was counted by itself" in whole
    assert "├─ red: size?  (500 ± 6 rows)" in whole  # its own count, not the 497 of its children
    assert pruned.split("\n")[1:] == [
        "colour?  (990 ± 6 rows)",
        "├─ red: no, confidence 96.0 % ± 0.8 %  [no 480 ± 4.2, yes 20 ± 4.2]",
        "└─ blue: yes, confidence 98.0 % ± 0.8 %  [no 10 ± 4.2, yes 495 ± 4.2]",
    ]
    assert {"red", "500 ± 6"} <= set(texts(parse(tree_svg(forest, 0, removed=removed))))
    assert "size?" not in texts(parse(tree_svg(forest, 0, removed=removed)))
    assert "size?" in texts(parse(tree_svg(forest, 0)))


def test_hostile_names_stay_text():
    forest = stump([[5, 6], [7, 8]], classes=(HOSTILE, "b"), name=HOSTILE + "name", values=(HOSTILE, "x"))
    pictures = [
        tree_svg(forest, 0),
        bars_svg([HOSTILE], [1.0], [1.0], HOSTILE),
        confusion_svg(np.ones((2, 2)), [HOSTILE, "b"], 1.0, HOSTILE),
    ]
    for svg in pictures:
        assert "<script" not in svg
        assert "\x1b" not in svg
        assert "\u202e" not in svg
        assert '<script>alert("1")</script>' in "".join(parse(svg).itertext())
    assert "\x1b" not in tree_text(forest, 0)


def test_many_classes():
    classes = tuple(f"class {i}" for i in range(18))
    counts = np.random.default_rng(1).integers(0, 99, (2, 18))
    forest = stump(counts.tolist(), classes=classes)
    assert "other classes" in texts(parse(tree_svg(forest, 0)))
    assert "13 more classes" in tree_text(forest, 0)
    parse(confusion_svg(np.eye(18) * 50, classes, 3.0, "Confusion"))
    parse(confusion_svg(np.eye(90), range(90), 3.0, "Confusion"))


def test_confusion_shows_numbers_and_noise():
    root = parse(confusion_svg(np.array([[90, -3], [1204, 40]]), ["no", "yes"], 4.2426, "Confusion"))
    assert {"90", "−3", "1,204", "40", "each number ± 4.2 (noise)"} <= set(texts(root))
    shades = [float(rect.get("fill-opacity")) for rect in root.iter(SVG + "rect") if rect.get("fill-opacity")]
    assert shades == pytest.approx([1, 0, 1204 / 1244, 40 / 1244], abs=1e-3)


def test_a_tree_that_asks_nothing():
    book = Codebook(Schema([Categorical("a", ("x", "y"))], Target("y", ("no", "yes"))))
    forest = CountedForest(book, (TreeBuilder(book.sizes).build(),), (np.array([[-3, -5]]),), (Fraction(9),))
    assert "1 leaf, height 0" in tree_text(forest, 0)
    assert "no" in texts(parse(tree_svg(forest, 0)))


def test_deep_trees_are_bounded_too():
    book = Codebook(Schema([Categorical("a", ("x", "y"))], Target("y", ("no", "yes"))))
    builder = TreeBuilder(book.sizes)
    node = 0
    for _ in range(500):
        node = builder.split(node, 0)[1]
    forest = CountedForest(book, (builder.build(),), (np.ones((501, 2), dtype=np.int64),), (Fraction(1),))
    assert len(parse(tree_svg(forest, 0, 1000)).findall(f".//{SVG}rect[@rx='7']")) <= 40
    assert len(tree_text(forest, 0, 1000).split("\n")) <= 202


@pytest.mark.parametrize(("tree", "depth"), [(1, 3), (-1, 3), ("0", 3), (True, 3), (0, -1), (0, 1.5)])
def test_what_does_not_exist_is_refused(tree, depth):
    for draw in (tree_svg, tree_text):
        with pytest.raises(PlanError, match="expected a whole number"):
            draw(stump([[1, 2], [3, 4]]), tree, depth)
