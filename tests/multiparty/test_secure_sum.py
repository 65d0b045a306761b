"""The secure sum: exact, the same for all, and what a party sends says nothing about its numbers."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from multiparty.owners import WAIT, at_once, make_parties

from hedgerow.errors import TogetherError
from hedgerow.multiparty import secure_sum
from hedgerow.multiparty.meeting import Meeting
from hedgerow.multiparty.parties import Parties
from hedgerow.multiparty.secure_sum import PRIME, WIDTH, ShamirSum, from_bytes, mpyc, to_bytes


def meetings(folder: Path, parties: Parties, **given: Any) -> list[Meeting]:
    how = {"wait": WAIT, "timeout": WAIT, **given}
    return [Meeting(parties, number, folder / f"owner-{number}.key", **how) for number in range(1, len(parties.owners) + 1)]


def sums(folder: Path, vectors: list[Any]) -> list[Any]:
    def one(meeting: Meeting, numbers: Any) -> Any:
        with meeting:
            return ShamirSum(meeting, parties.shares).sum(np.array(numbers, dtype=object))

    parties = make_parties(folder, len(vectors))
    return at_once([lambda m=m, v=v: one(m, v) for m, v in zip(meetings(folder, parties), vectors, strict=True)])


@pytest.mark.parametrize("owners", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_everybody_gets_the_sum(tmp_path: Path, owners: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure_sum, "AT_ONCE", 40)  # several messages
    vectors = np.random.default_rng(1).integers(-(2**55), 2**55, (owners, 101))
    for total in sums(tmp_path, vectors.tolist()):
        assert total.tolist() == vectors.sum(axis=0).tolist()


def test_what_is_far_beyond_64_bits_stays_at_the_end(tmp_path: Path) -> None:
    limit = 2**62 - 1
    assert [total.tolist() for total in sums(tmp_path, [[2**80, -(2**80), 2**80], [0, 0, -(2**80)], [0, 0, 7]])] == [[limit, -limit, 7]] * 3


class Sent:
    """All that the parties send, beside what they should hide."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[bytes] = []
        exchange = Meeting.exchange

        def listen(meeting: Meeting, messages: Any, most: int, doing: str) -> Any:
            if doing == "adding up":
                self.messages += [message for peer, message in messages.items() if peer != meeting.number]
            return exchange(meeting, messages, most, doing)

        monkeypatch.setattr(Meeting, "exchange", listen)

    def reveals(self, numbers: list[int]) -> bool:
        """Whether a number stands in a message, or messages are not spread over the whole field."""
        pieces = np.concatenate([from_bytes(message, len(message) // WIDTH) for message in self.messages])
        high = (pieces > PRIME // 2).mean()
        return any(number % PRIME in set(pieces) for number in numbers) or abs(high - 0.5) > 6 * 0.5 / len(pieces) ** 0.5


def test_pieces_say_nothing_and_a_planted_sharing_without_masks_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = [[12345 + i + 1000 * owner for i in range(300)] for owner in range(3)]
    sent, numbers = Sent(monkeypatch), [number for vector in vectors for number in vector]
    right = [total.tolist() for total in sums(tmp_path, vectors)]
    assert len(sent.messages) == 6
    assert not sent.reveals(numbers)
    split = mpyc("thresha").np_random_split
    monkeypatch.setattr(mpyc("thresha"), "np_random_split", lambda field, s, t, m: split(field, s, 0, m))  # polynomials of degree 0
    folder = tmp_path / "planted"
    folder.mkdir()
    sent.messages.clear()
    assert [total.tolist() for total in sums(folder, vectors)] == right  # the sum does not tell
    assert sent.reveals(numbers)


def test_one_vector_to_a_sum(tmp_path: Path) -> None:
    class Alone:
        number, present, parties = 1, [1], make_parties(tmp_path, 3)

        def exchange(self, messages: Any, most: int, doing: str) -> dict[int, bytes]:
            return {}

    alone = ShamirSum(Alone(), 2)
    with pytest.raises(TogetherError, match="different sums"):
        alone.sum(np.array([3, 4], dtype=object))
    with pytest.raises(TogetherError, match="for one vector"):
        alone.sum(np.array([3, 4], dtype=object))


@pytest.mark.parametrize(
    "data", [to_bytes(np.array([1, 2], dtype=object)), PRIME.to_bytes(WIDTH, "big"), b"12345"], ids=["long", "field", "cut"]
)
def test_a_vector_of_another_length_or_field_is_refused(data: bytes) -> None:
    with pytest.raises(TogetherError, match="another length or field"):
        from_bytes(data, 1)


@pytest.fixture
def fresh_mpyc() -> Iterator[None]:
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "mpyc"}
    yield
    sys.modules.update(before)


@pytest.mark.usefixtures("fresh_mpyc")
def test_importing_mpyc_reads_no_command_line_and_logs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["hedgerow", "together", "-V", "-T", "x"])
    level = logging.getLogger().level
    assert mpyc("thresha").np_random_split
    assert sys.argv == ["hedgerow", "together", "-V", "-T", "x"]
    assert logging.getLogger().level in (level, logging.WARNING)


@pytest.mark.usefixtures("fresh_mpyc")
def test_without_mpyc_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpyc", None)
    with pytest.raises(TogetherError, match=r"hedgerow\[together\]"):
        mpyc("thresha")
