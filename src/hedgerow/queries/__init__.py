"""Private queries: one class, one file, one theorem. `query.py` says what a class holds and how to add one."""

from typing import Any

from hedgerow.queries.best import Best
from hedgerow.queries.best_model import BestModel
from hedgerow.queries.best_scale import BestScale
from hedgerow.queries.boost_round import BoostRound
from hedgerow.queries.choose import Choose, ChooseLocally
from hedgerow.queries.choose_tree import ChooseTree
from hedgerow.queries.class_counts import ClassCounts
from hedgerow.queries.confusion import Confusion
from hedgerow.queries.gradient_sums import GradientSums
from hedgerow.queries.leaf_counts import LeafCounts
from hedgerow.queries.leaf_sizes import LeafSizes
from hedgerow.queries.query import Block, ChoiceQuery, CountingQuery, Query, Sums, UnprotectedTable
from hedgerow.queries.reliability import Reliability
from hedgerow.queries.rows import Rows
from hedgerow.queries.score_bins import ScoreBins
from hedgerow.queries.sizes import Sizes
from hedgerow.queries.tables import Tables

QUERIES: tuple[type[Query[Any]], ...] = (
    Rows, LeafCounts, Sizes, ClassCounts, Tables, Confusion, Reliability, GradientSums, Choose, Best, BestScale,
    LeafSizes, ChooseTree, BoostRound, BestModel, ScoreBins,
)  # fmt: skip
"""Closed: what is not listed here has no proof, and is neither answered from afar nor believed in a certificate."""
BY_NAME: dict[str, type[Query[Any]]] = {query.name: query for query in QUERIES}

__all__ = [
    "BY_NAME", "QUERIES", "Best", "BestModel", "BestScale", "Block", "BoostRound", "ChoiceQuery", "Choose", "ChooseLocally", "ChooseTree",
    "ClassCounts", "Confusion", "CountingQuery", "GradientSums", "LeafCounts", "LeafSizes", "Query", "Reliability", "Rows", "ScoreBins",
    "Sizes", "Sums", "Tables", "UnprotectedTable",
]  # fmt: skip
