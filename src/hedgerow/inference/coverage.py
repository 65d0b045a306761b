"""Do the released counts add up to the table? Rows that no leaf counted show a schema that does not fit its table.

A comparison of released numbers: it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from hedgerow.inference.text import plain
from hedgerow.trees.forest import CountedForest

WORTH_SAYING = 0.05  # of the rows
FEW = 3  # attributes that are named
FAR = 8  # standard deviations: noise alone goes so far once in 100,000 trees, since Laplace noise has long tails


def not_counted(forest: CountedForest, rows: int | None, rows_sd: float = 0.0) -> str | None:
    """A sentence about rows that are missing from the counts, or None if noise could explain them.

    rows: the number of rows, declared or noisy; without one, the best-filled tree stands in.
    """
    totals = [int(counts[0].sum()) for counts in forest.node_counts]
    errors = [float(forest.node_noise_sd(t)[0]) * math.sqrt(forest.codebook.n_classes) for t in range(len(forest.trees))]
    fullest = max(range(len(totals)), key=totals.__getitem__)
    whole, whole_sd = (rows, rows_sd) if rows is not None else (totals[fullest], errors[fullest])
    if whole <= 0:
        return None
    share = {
        t: (whole - total) / whole
        for t, total in enumerate(totals)
        if whole - total > max(WORTH_SAYING * whole, FAR * math.hypot(errors[t], whole_sd))
    }
    if not share:
        return None
    worst = max(share, key=share.__getitem__)
    if len(share) == len(totals) and (columns := _target_or(forest)):
        known = ", ".join(plain(value) for value in forest.codebook.schema.target.classes)
        return (
            f"about {min(min(share.values()), 1):.0%} of the rows are counted in no tree: the column {columns} holds values that the "
            f"schema does not declare. Declared classes are {known}." + _beyond_the_limit(forest, rows)
        )
    return (
        f"about {min(share[worst], 1):.0%} of the rows are counted in no leaf of tree {worst + 1}"
        + (f" (and {len(share) - 1} more trees lack rows)" if len(share) > 1 else "")
        + _suspects(forest, share.keys(), worst)
        + ": they hold values or classes that the schema does not declare. Declare them, or name branches for them with "
        "`other` and `missing`." + _beyond_the_limit(forest, rows)
    )


def _target_or(forest: CountedForest) -> str:
    """The target, with what all trees ask about as well; nothing where that is too much to name.

    Every tree lacks rows: what they share is the class, and the attributes that each of them asks about.
    """
    schema = forest.codebook.schema
    common = set.intersection(*({*tree.attribute[tree.attribute >= 0].tolist()} for tree in forest.trees))
    names = [f"{plain(schema.target.name)} (the target)", *(plain(schema.names[a]) for a in sorted(common))]
    return " or ".join(names) if len(names) <= FEW else ""


def _beyond_the_limit(forest: CountedForest, rows: int | None) -> str:
    """A declared number of rows may be that of the whole table, of which only some rows of each person are counted."""
    schema = forest.codebook.schema
    if schema.person is None or rows is None or rows != schema.rows:
        return ""
    return f" Or persons have more than {schema.k} rows, which are not counted: `rows` should be the number that is."


def _suspects(forest: CountedForest, lacking: Collection[int], worst: int) -> str:
    """The attributes that all trees which lack rows ask about, and no other tree does; else those of the worst tree, if they are few."""
    asked = [set(tree.attribute[tree.attribute >= 0].tolist()) for tree in forest.trees]
    full = set().union(*(asked[t] for t in range(len(asked)) if t not in lacking))
    suspects = set.intersection(*(asked[t] for t in lacking)) - full or asked[worst]
    names = [plain(forest.codebook.schema.names[a]) for a in sorted(suspects)]
    return f", where {' and '.join(names)} {'is' if len(names) == 1 else 'are'} split on" if 0 < len(names) <= FEW else ""
