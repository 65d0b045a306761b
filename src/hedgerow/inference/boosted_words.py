"""The boosted trees of a Hedgerow forest in words: how many, how deep, what they ask about. It costs nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hedgerow.inference.additive import AdditiveForest
from hedgerow.inference.text import plain
from hedgerow.trees.plan import counts_and_trees

NAMED = 4  # attributes


@dataclass(frozen=True)
class Boosted:
    """trees: how many; splits: on a path, the fewest and the most; asked: (attribute, in how many trees), the most frequent first"""

    trees: int
    splits: tuple[int, int]
    asked: tuple[tuple[str, int], ...]

    def text(self) -> str:
        """ "236 of 3 splits each; they ask most about income (in 120 of them), age (90) and 4 other attributes" """
        least, most = self.splits
        depth = f"{most} {'split' if most == 1 else 'splits'}" if least == most else f"{least} to {most} splits"
        named = [
            f"{plain(name)} ({'in ' if not i else ''}{times:,}{' of them' if not i else ''})" for i, (name, times) in enumerate(self.asked)
        ]
        more = len(named) - NAMED
        shown = [*named[:NAMED], *([f"{more} other {'attribute' if more == 1 else 'attributes'}"] if more > 0 else [])]
        listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
        return f"{self.trees:,} of {depth} each; they ask most about {listed}"


def forest_in_words(trees: int, additive: AdditiveForest | None) -> str:
    """What a forest is built of: "5 trees"; of a Hedgerow forest (`additive`) as `counts_and_trees` says."""
    if additive is None:
        return f"{trees:,} {'tree' if trees == 1 else 'trees'}"
    found = boosted(additive)
    least, most = (0, 0) if found is None else found.splits
    return counts_and_trees(
        len(additive.tables.tables), 0 if found is None else found.trees, f"{least} to {most}" if least < most else f"{most}"
    )


def boosted(forest: AdditiveForest) -> Boosted | None:
    """None where there are none."""
    trees = forest.correction.boosted_trees
    if not trees:
        return None
    names = forest.tables.codebook.schema.names
    asked = Counter(names[j] for tree in trees for j in dict.fromkeys(tree.attributes))
    depths = [len(tree.attributes) for tree in trees]
    return Boosted(len(trees), (min(depths), max(depths)), tuple(sorted(asked.items(), key=lambda each: (-each[1], each[0]))))
