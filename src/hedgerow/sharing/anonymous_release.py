"""A pruned tree as a release: its guarantee is anonymity, and it never states an ε."""

from __future__ import annotations

from typing import Any

from hedgerow.errors import SchemaError
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import anonymity_certificate
from hedgerow.release.release import Release
from hedgerow.schema.schema import Schema
from hedgerow.schema.value_edges import VALUES
from hedgerow.sharing.prune import Pruned
from hedgerow.trees.used_edges import with_used_edges

ALGORITHM = "anonymity-pruned tree"


def anonymous_release(pruned: Pruned, bins: Any = None) -> Release:
    """What an owner may share: the pruned tree with its counts, and what its paths satisfy.

    bins: what the tree says that it was learnt with. Of one that was cut at values the edges go that no path asks about any more
    """
    forest, at_values = pruned.forest, bins == VALUES
    check_schema(forest.codebook.schema)
    if at_values:
        forest = with_used_edges(forest)
    hits = any(group.counts is None for group in pruned.groups)
    return Release(
        forest,
        anonymity_certificate(pruned.requirement.record(), pruned.requirement.words(), hits, at_values),
        algorithm=ALGORITHM,
        vote=SUMMED_COUNTS,
        parameters={"bins": VALUES if at_values else forest.codebook.bins},
        chosen={"merges": len(pruned.cuts), "paths": len(forest.trees[0].leaves)},
    )


def check_schema(schema: Schema, what: str = "a tree", group: str = "path") -> None:
    """Refuse a schema that no anonymity can be claimed with: what is shared holds its values and bounds, and counts rows as persons."""
    if schema.unreviewed:
        raise SchemaError(
            f"schema: the entries {', '.join(schema.unreviewed)} were read from the rows, and single persons may show in "
            f"them. Review the schema first: {what} that is shared holds its values and bounds."
        )
    if schema.k > 1:
        raise SchemaError(
            f"schema rows_per_person: got {schema.k}; anonymity needs 1. It says how many persons share a {group}, and "
            f"with several rows of a person a {group}'s rows are not its persons. Set rows_per_person = 1: then one row of each is counted."
        )
