"""Every board on which a game of tic-tac-toe can end, x moving first (UCI's Tic-Tac-Toe Endgame)."""

from __future__ import annotations

import numpy as np

from hedgerow.datasets.dataset import Dataset, declared_schema

_X, _O, _BLANK = range(3)
_TEXT = np.array(["x", "o", "b"])
_LINES = np.array([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)])


def tic_tac_toe() -> Dataset:
    """All 958 finished boards; the class is "positive" where x has won. Rows are in UCI's order."""
    schema = declared_schema("tic-tac-toe")
    # Every filling of nine squares, counted in base 3, hence in UCI's lexicographic order x < o < b.
    boards = np.arange(3**9)[:, None] // 3 ** np.arange(8, -1, -1) % 3
    pieces_x, pieces_o = (boards == _X).sum(axis=1), (boards == _O).sum(axis=1)
    line_x, line_o = _has_line(boards, _X), _has_line(boards, _O)
    # The game stops at the first line: the winner moved last, so the counts tell who that was.
    x_wins = line_x & ~line_o & (pieces_x == pieces_o + 1)
    o_wins = line_o & ~line_x & (pieces_x == pieces_o)
    draws = ~line_x & ~line_o & (pieces_x == 5) & (pieces_o == 4)
    ends = np.concatenate([boards[x_wins], boards[o_wins], boards[draws]])
    squares = _TEXT[ends]
    won = np.arange(len(ends)) < x_wins.sum()
    return Dataset(
        name="tic-tac-toe",
        columns={name: squares[:, position].copy() for position, name in enumerate(schema.names)},
        target=np.where(won, "positive", "negative"),
        schema=schema,
        note="All boards on which a game can end, computed; equal to UCI's Tic-Tac-Toe Endgame.",
    )


def _has_line(boards: np.ndarray, piece: int) -> np.ndarray:
    found: np.ndarray = (boards[:, _LINES] == piece).all(axis=2).any(axis=1)
    return found
