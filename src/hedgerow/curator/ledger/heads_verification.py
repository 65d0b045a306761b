"""The file of heads, compared with a chain: is each head that was written down in it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hedgerow.curator.ledger.chain import Head
from hedgerow.curator.ledger.heads import KEPT, HeadLine, Heads

ACCEPT = "If you know that it is right, record so: `hedgerow curator accept`."


class KnownHeads:
    """Takes the entries of a chain one by one, and says what does not agree. Without a file there is nothing to say."""

    def __init__(self, heads: Heads | None) -> None:
        self._heads = heads
        self._there = heads is not None and heads.exists
        self._key = heads.key_of_file() if heads is not None and self._there else ""
        self._lines = list(heads.lines()) if heads is not None and self._there else []
        self._wanted = {line.head for line in self._lines if isinstance(line, HeadLine)}
        self._found: set[Head] = set()

    @property
    def compared(self) -> int | None:
        return len(self._lines) if self._there else None

    def see(self, head: Head) -> None:
        if head in self._wanted:
            self._found.add(head)

    def problems(self, last: Head, keys: Sequence[str], noted: int, newest: int | None) -> Iterator[tuple[int | None, str]]:
        """keys: of the service, as the chain names them; noted: the number of a head that the file had."""
        if self._heads is None:
            return
        if not self._there:
            if keys and self._heads.expected:
                yield None, f"the file of heads {str(self._heads.path)!r} is missing. Put it back. {ACCEPT}"
            return
        yield from self._of_key(keys)
        good = [line for line in self._lines if isinstance(line, HeadLine)]
        kept = [line for line in good if line.word == KEPT]
        yield from self._of_lines(good, newest)
        end = kept[-1].head.seq if kept else 0
        if end < noted:
            yield None, f"the file of heads ends at {end}, and had {noted}: lines are missing at its end. {ACCEPT}"
        yield from self._of_chain(kept, last)
        if self._heads.expected and keys and last not in self._wanted and last.seq > end:
            again = {line.head for line in self._heads.good_lines()}  # the service may have gone on meanwhile
            if last not in again:
                yield end + 1, f"and those after it were not written with the key of the service: the file of heads has them not. {ACCEPT}"

    def _of_key(self, keys: Sequence[str]) -> Iterator[tuple[int | None, str]]:
        assert self._heads is not None
        if keys and self._key != keys[-1]:
            yield None, f"the file of heads is signed with another key than the ledger names. {ACCEPT}"
        if keys and self._heads.expected and not self._heads.key_path.exists():
            yield None, f"the key of the service {str(self._heads.key_path)!r} is missing. Put it back. {ACCEPT}"
        own = self._heads.own_key
        if keys and own is not None and own != keys[-1]:
            yield None, f"the key of the service is not the one that the ledger names: one of them was replaced. {ACCEPT}"

    def _of_lines(self, good: list[HeadLine], newest: int | None) -> Iterator[tuple[int | None, str]]:
        """Signatures, and that numbers grow; the first fault is enough."""
        for line in self._lines:
            if not isinstance(line, HeadLine):
                yield None, f"line {line} of the file of heads was altered: it cannot be read. {ACCEPT}"
                return
        after = 0
        for line in good:
            unchecked = newest is not None and line.number <= len(good) - newest and line.head in self._found
            if not unchecked and not line.signed_by(self._key):
                yield None, f"line {line.number} of the file of heads was altered: it does not have its signature. {ACCEPT}"
                return
            if line.word == KEPT and line.head.seq <= after:
                yield None, f"line {line.number} of the file of heads is out of order. {ACCEPT}"
                return
            after = line.head.seq if line.word == KEPT else after

    def _of_chain(self, kept: list[HeadLine], last: Head) -> Iterator[tuple[int | None, str]]:
        missing = [line for line in kept if line.head not in self._found]
        if not missing:
            return
        first, end = missing[0].head.seq, missing[-1]
        if first > last.seq:
            yield (
                last.seq + 1,
                (
                    f"is missing: the file of heads has {end.head} of {end.when}, and the ledger ends at {last.seq}. An older copy was put "
                    f"back, or the end was cut off; what was spent since is forgotten. Put the right one back. {ACCEPT}"
                ),
            )
        else:
            yield first, f"was written anew: the file of heads has another one ({missing[0].head} of {missing[0].when}). {ACCEPT}"
