"""The king-rook-king chess endgame by retrograde analysis (UCI's Chess, King-Rook vs. King).

A position is (white king, white rook, black king), each a square 8 * file + rank, so that all positions are
one 64 x 64 x 64 array. "Some move leads to a won position" is then a product of 0/1 matrices, which makes the
whole analysis a matter of a fraction of a second.
"""

from __future__ import annotations

import numpy as np

from hedgerow.datasets.dataset import Dataset, declared_schema

_DRAW = -1  # not won by White; also the mark of positions that cannot occur


def chess_krk() -> Dataset:
    """All 28,056 positions with Black to move, up to symmetry, with White's optimal depth of win in moves.

    Rows are in UCI's order: by class, then by the six attributes.
    """
    schema = declared_schema("chess-krk")
    depth = depth_of_win()
    position = np.argwhere(_representatives() & _possible())
    found = depth[tuple(position.T)]
    order = np.argsort(found, kind="stable")  # argwhere already sorts by the attributes
    position, found = position[order], found[order]
    files, ranks = np.array(list("abcdefgh")), np.array(list("12345678"))
    columns = {}
    for piece in range(3):
        columns[schema.names[2 * piece]] = files[position[:, piece] // 8]
        columns[schema.names[2 * piece + 1]] = ranks[position[:, piece] % 8]
    classes = np.array(schema.target.classes)  # draw, zero, one, …: depth -1 is class 0
    return Dataset(
        name="chess-krk",
        columns=columns,
        target=classes[found - _DRAW],
        schema=schema,
        note="King and rook against king, Black to move, computed; equal to UCI's krkopt.",
    )


def depth_of_win() -> np.ndarray:
    """White's moves to mate under best play, for every position with Black to move; -1: no win."""
    king_move = _king_moves()
    step = king_move.astype(np.float32)
    attack = _rook_attacks()  # [white king, rook, square]
    slide = attack.astype(np.float32)
    possible = _possible()

    # Black may step to a square that neither the white king nor the rook guards. His own king hides nothing
    # from the rook: he leaves his square by moving. Taking an unguarded rook is kept apart: it draws at once.
    safe = ~attack & ~king_move[:, None, :] & ~np.eye(64, dtype=bool)[None, :, :]
    safe &= np.arange(64) != np.arange(64)[:, None, None]
    rook_lost = (~king_move)[:, :, None] & king_move[None, :, :]
    can_step = safe.astype(np.float32) @ step > 0

    undecided = possible & ~rook_lost
    mated = undecided & attack & ~can_step
    undecided &= can_step  # the rest are stalemates: draws
    depth = np.where(mated, 0, _DRAW)
    won_for_white_to_move = np.zeros_like(mated)
    newly_won, moves = mated, 0
    while newly_won.any():
        moves += 1
        goal = newly_won.astype(np.float32)
        # With White to move Black is not in check, so only the white king can stand in the rook's way.
        by_rook = slide @ goal > 0
        by_king = (step @ goal.reshape(64, -1)).reshape(64, 64, 64) > 0
        won_for_white_to_move |= by_rook | by_king
        escape = (safe & ~won_for_white_to_move).astype(np.float32) @ step > 0
        newly_won = undecided & ~escape
        depth[newly_won] = moves
        undecided &= escape
    return depth


def _king_moves() -> np.ndarray:
    """[from, to]: the squares next to each other."""
    file, rank = np.divmod(np.arange(64), 8)
    near: np.ndarray = np.maximum(abs(file[:, None] - file), abs(rank[:, None] - rank)) == 1
    return near


def _possible() -> np.ndarray:
    """Three different squares, the kings not next to each other."""
    square = np.arange(64)
    king, rook, black = square[:, None, None], square[None, :, None], square[None, None, :]
    apart = ~_king_moves() & (square[:, None] != square)
    possible: np.ndarray = apart[:, None, :] & (king != rook) & (rook != black)
    return possible


def _rook_attacks() -> np.ndarray:
    """[white king, rook, square]: squares that the rook reaches when only the white king can block it."""
    file, rank = np.divmod(np.arange(64), 8)
    same_file, same_rank = file[:, None] == file, rank[:, None] == rank
    on_line = same_file ^ same_rank  # not the rook's own square

    def within(coordinate: np.ndarray) -> np.ndarray:
        """[king, rook, square]: the king's coordinate lies from the rook's to the square's, both included."""
        king, rook, square = coordinate[:, None, None], coordinate[None, :, None], coordinate[None, None, :]
        inside: np.ndarray = (np.minimum(rook, square) <= king) & (king <= np.maximum(rook, square))
        return inside

    blocked = within(file) & within(rank)  # on a line this also covers the king's own square
    reached: np.ndarray = on_line & ~blocked
    return reached


def _representatives() -> np.ndarray:
    """One position for each class of equal ones under the eight symmetries of the board, as UCI chooses it.

    The white king stands in the triangle a1-d1-d4. If it stands on the diagonal a1-h8, one reflection is
    left: it brings the first piece off the diagonal (black king, then rook) below it.
    """
    file, rank = np.divmod(np.arange(64), 8)
    triangle = (file <= 3) & (rank <= file)
    below, diagonal = rank < file, rank == file
    king = triangle[:, None, None]
    king_settles, black_settles = (triangle & below)[:, None, None], below[None, None, :]
    rook_settles = diagonal[None, None, :] & (below | diagonal)[None, :, None]
    chosen: np.ndarray = king & (king_settles | black_settles | rook_settles)
    return chosen
