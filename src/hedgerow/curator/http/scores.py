"""A private score of a release that the service has stored, as a document."""

from __future__ import annotations

import json
from typing import Any, cast

from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.curator.http.reservations import PrepaidBudget
from hedgerow.curator.ledger.registry import Dataset
from hedgerow.errors import PlanError, SchemaMismatchWarning
from hedgerow.evaluation.private import private_score
from hedgerow.evaluation.score import PrivateScore
from hedgerow.queries import Confusion
from hedgerow.release.release import Release
from hedgerow.schema.toml import same_columns

CONTENT_TYPE = "application/vnd.hedgerow.score+json"


def scored(content: bytes, dataset: Dataset, epsilon: Any) -> Release:
    """The release, refused where its schema is not the dataset's: also in the person column and how many rows of a person count, which
    the charge depends on. How many rows there are, and how files are written, each schema says of a table of its own.
    """
    release = Release.from_json(content)
    if not same_columns(release.schema, dataset.schema):
        raise PlanError(
            "release: its schema is not that of the dataset; expected a release of a dataset with the same columns, values, bounds and "
            "persons. Nothing was spent."
        )
    Confusion.cost(exact_epsilon(epsilon), release.schema.k)  # refuses what cannot be drawn
    return release


def scored_as_json(release: Release, place: Any, epsilon: Any, budget: PrepaidBudget, threads: int) -> bytes:
    try:
        score = private_score(release, place, epsilon=epsilon, budget=budget, n_jobs=threads)
    except SchemaMismatchWarning as warning:  # where warnings are errors: it is paid for, and the analyst is told
        score = cast(PrivateScore, warning.paid)
    return json.dumps(
        {
            "confusion": score.confusion.tolist(),
            "undeclared": score.undeclared,
            "classes": list(score.classes),
            "noise_scale": text_of_fraction(score.noise_scale),
            "accuracy": score.accuracy,
            "accuracy_error": score.accuracy_error,
            "guarantee": score.certificate.sentence(),
        }
    ).encode()
