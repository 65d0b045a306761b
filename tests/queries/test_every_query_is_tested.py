"""Whoever adds a query to `QUERIES` is told here which tables of cases, in the tests of others, want a line for it."""

from __future__ import annotations

import pytest
from curator.http import test_sessions
from private_table import test_gaussian_queries, test_private_table, test_queries_by_hand, test_query_noise
from remote import test_remote_table
from whole import test_user_level

from hedgerow.queries import BY_NAME, ChoiceQuery, CountingQuery

COUNTING = {name for name, query in BY_NAME.items() if issubclass(query, CountingQuery)}
GRADIENTS = ("gradient_sums", "boost_round")
CASES: dict[str, tuple[set[str], set[str]]] = {  # where; the queries that it has; those that it must have
    "private_table/test_private_table.py": (set(test_private_table.QUERY_CASES), {*BY_NAME, "choose_locally"}),
    "whole/test_user_level.py": (set(test_user_level.QUERY_CASES), {*BY_NAME, "choose_locally"}),
    "remote/test_remote_table.py": ({name.split()[0] for name in test_remote_table.QUERY_CASES}, set(BY_NAME)),
    "curator/http/test_sessions.py": (
        {*test_sessions.BODIES, "reliability", "score_bins"},
        set(BY_NAME),
    ),  # of a release: test_remote_table.py
    "private_table/test_queries_by_hand.py": (
        {*test_queries_by_hand.COUNTS, "tables", "boost_round"},
        COUNTING,
    ),  # which have tests of their own there
    "private_table/test_gaussian_queries.py": (set(test_gaussian_queries.QUERY_CASES), COUNTING),
    "private_table/test_query_noise.py": ({*test_query_noise.QUERY_CASES, *GRADIENTS}, COUNTING),  # test_gradients.py, test_boosting.py
}


@pytest.mark.parametrize("where", CASES)
def test_every_table_of_cases_knows_every_query(where: str) -> None:
    has, wanted = CASES[where]
    assert has == wanted, f"tests/{where} has no case for {sorted(wanted - has)}, or one for what is no query: {sorted(has - wanted)}."


def test_every_query_counts_or_chooses() -> None:
    assert {name for name, query in BY_NAME.items() if issubclass(query, ChoiceQuery)} == set(BY_NAME) - COUNTING
