"""A pruned tree as a release: its guarantee is anonymity, and it never states an ε."""

from __future__ import annotations

from hedgerow.errors import SchemaError
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import anonymity_certificate
from hedgerow.release.release import Release
from hedgerow.schema.schema import Schema
from hedgerow.sharing.prune import Pruned

ALGORITHM = "anonymity-pruned tree"


def anonymous_release(pruned: Pruned) -> Release:
    """What an owner may share: the pruned tree with its counts, and what its paths satisfy."""
    forest = pruned.forest
    check_may_be_shared(forest.codebook.schema)
    hits = any(group.counts is None for group in pruned.groups)
    return Release(
        forest,
        anonymity_certificate(pruned.requirement.record(), pruned.requirement.words(), hits),
        algorithm=ALGORITHM,
        vote=SUMMED_COUNTS,
        parameters={"bins": forest.codebook.bins},
        chosen={"merges": len(pruned.cuts), "paths": len(forest.trees[0].leaves)},
    )


def check_may_be_shared(schema: Schema) -> None:
    """What is shared holds the schema, and its groups must be persons."""
    if schema.unreviewed:
        raise SchemaError(
            f"schema: the entries {', '.join(schema.unreviewed)} were read from the rows, and single persons may show in "
            "them. Review the schema first: a tree that is shared holds its values and bounds."
        )
    if schema.k > 1:
        raise SchemaError(
            f"schema rows_per_person: got {schema.k}; anonymity needs 1. It says how many persons share a path, and "
            "with several rows of a person a path's rows are not its persons."
        )
