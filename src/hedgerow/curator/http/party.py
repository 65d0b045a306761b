"""The service as one of the owners who count together: its place in their file, and its key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import TogetherError
from hedgerow.multiparty.parties import Parties


@dataclass(frozen=True)
class ServiceParty:
    """Checked at the start of a service, and sent with each of its jobs to the process that counts. The key stays in its file.

    A service with tolerated = 0 was started with its owner's word for it (`load`).
    """

    parties: Parties
    number: int
    key: Path

    @classmethod
    def load(cls, path: Path, number: int, key: Path | None = None, trust_owners: bool = False) -> ServiceParty:
        """key: by default the file NAME.key beside the parties' file, as `hedgerow together init` wrote it.

        trust_owners: its owner states that no owner keeps its share of the noise, which a file with tolerated = 0 needs
        """
        from hedgerow.multiparty.meeting import Meeting
        from hedgerow.multiparty.secure_sum import mpyc

        parties = Parties.load(path)
        if not parties.tolerated and not trust_owners:
            raise TogetherError(
                f"{path}: tolerated is 0: an owner who keeps its own share of the noise would see your rows at a larger ε than is charged "
                "here. If you trust every owner not to, state it with --trust-owners; otherwise agree on tolerated = 1."
            )
        own = parties.party(number)
        found = (path.parent / f"{own.name}.key" if key is None else key).resolve()
        mpyc("thresha")  # what is not installed, and a key that does not fit, is said now
        Meeting(parties, number, found)
        return cls(parties, number, found)
