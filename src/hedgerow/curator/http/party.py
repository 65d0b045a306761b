"""The service as one of the owners who count together: its place in their file, and its key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hedgerow.multiparty.parties import Parties


@dataclass(frozen=True)
class ServiceParty:
    """Checked at the start of a service, and sent with each of its jobs to the process that counts. The key stays in its file."""

    parties: Parties
    number: int
    key: Path

    @classmethod
    def load(cls, path: Path, number: int, key: Path | None = None) -> ServiceParty:
        """key: by default the file NAME.key beside the parties' file, as `hedgerow together init` wrote it."""
        from hedgerow.multiparty.meeting import Meeting
        from hedgerow.multiparty.secure_sum import mpyc

        parties = Parties.load(path)
        own = parties.party(number)
        found = (path.parent / f"{own.name}.key" if key is None else key).resolve()
        mpyc("thresha")  # what is not installed, and a key that does not fit, is said now
        Meeting(parties, number, found)
        return cls(parties, number, found)
