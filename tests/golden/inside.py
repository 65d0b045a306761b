"""All that the golden tests need from inside the package. When modules move, this file is all that changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hedgerow.accounting.prices import Rho
from hedgerow.anonymity.requirement import Requirement
from hedgerow.curator.application import application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.database import open_database
from hedgerow.errors import SchemaMismatchWarning
from hedgerow.mechanisms.coins import SeededCoins, SystemCoins
from hedgerow.queries.scores import GINI, MAX, NORMAL_GINI, information_gain
from hedgerow.sharing.anonymous_release import anonymous_release
from hedgerow.sharing.prune import prune
from hedgerow.trees.additive_model import AdditiveModel, MostProbable
from hedgerow.trees.splits import by_threshold, by_value

__all__ = [
    "GINI", "MAX", "NORMAL_GINI", "AdditiveModel", "Curator", "Limits", "MostProbable", "Rho", "anonymous", "application", "by_threshold",
    "by_value", "information_gain", "known_coins", "open_database", "with_test_coins",
]  # fmt: skip


@contextmanager
def known_coins(seed: int) -> Iterator[None]:
    """The system's coins give bits that anyone can replay, so that noise and random names repeat. FOR TESTS ONLY.

    Certificates are then written as for secret coins: those are the bytes to keep. What they claim is true of no golden file.
    """
    coins = SeededCoins(seed)
    with patch.object(SystemCoins, "bytes", lambda self, n: coins.bytes(n)), warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaMismatchWarning)  # some rows are meant not to fit
        yield


def with_test_coins(estimator: Any, seed: int) -> Any:
    """The same estimator; its release says that it has no privacy."""
    estimator._coins = SeededCoins(seed)
    return estimator


def anonymous(release: Any, k: int, hits_only: bool) -> Any:
    """A tree with exact counts, pruned until every path has k persons."""
    return anonymous_release(prune(release.forest, Requirement(k), hits_only=hits_only))
