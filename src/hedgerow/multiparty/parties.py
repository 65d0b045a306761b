"""`parties.toml`: the owners who count together, each with its address and certificate. It is public, and the same for all of them."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hedgerow.errors import TogetherError
from hedgerow.multiparty.certificates import fingerprint
from hedgerow.release.parts import MAX_OWNERS

HEAD = """\
# Owners who count together (docs/TOGETHER.md). Public; every owner has the same file.
# tolerated: how many of them may use or put together what they know of the noise, without harm to the others. From 1 to less than half.
# One fewer may be absent: with 1 all must come. Or 0, the least noise: all must come, and each is trusted not to keep its own share.
tolerated = {tolerated}
"""
MAX_BYTES = 2**20
MAX_NAME = 60  # characters


@dataclass(frozen=True)
class Party:
    """One owner: a name that others will see, host:port where it listens, its certificate as PEM."""

    name: str
    address: str
    certificate: str

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.certificate)

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@dataclass(frozen=True)
class Parties:
    """All owners, in the order of the file; party numbers begin with 1.

    tolerated: t of M4. An owner who knows its own share of the noise is one of the t: that is why it is 1 unless it is declared to be 0,
    that no owner keeps its share, and why at most t - 1 may be absent
    """

    owners: tuple[Party, ...]
    tolerated: int = 1

    def __post_init__(self) -> None:
        k, t = len(self.owners), self.tolerated
        if not 3 <= k <= MAX_OWNERS:
            raise TogetherError(
                f"parties: got {k}; expected 3 to {MAX_OWNERS} owners. Two would each learn the other's counts from the sum."
            )
        if not isinstance(t, int) or isinstance(t, bool) or not 0 <= 2 * t < k:
            raise TogetherError(
                f"parties: tolerated is {t!r}; expected a whole number from 0 to {(k - 1) // 2}, less than half of {k} owners."
            )
        for what, found in (("name", [each.name for each in self.owners]), ("certificate", [each.fingerprint for each in self.owners]),
                            ("address", [each.address for each in self.owners])):  # fmt: skip
            if len(set(found)) != k:
                raise TogetherError(f"parties: two owners have the same {what}. Each makes its own: `hedgerow together init`.")

    @property
    def shares(self) -> int:
        """How many shares of noise are a whole draw: k - t.  [M4]"""
        return len(self.owners) - self.tolerated

    @property
    def least_present(self) -> int:
        """With fewer nobody begins: one of the t is always left for an owner who looks. With t = 0 all must come."""
        return len(self.owners) - max(self.tolerated, 1) + 1

    @property
    def digest(self) -> str:
        """Who takes part, and t. Addresses may differ: an owner may be reached by different ways."""
        told = [self.tolerated, *([each.name, each.fingerprint] for each in self.owners)]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def party(self, number: int) -> Party:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(self.owners):
            raise TogetherError(f"party: got {number!r}; expected 1 to {len(self.owners)}, your place in the parties' file.")
        return self.owners[number - 1]

    def words(self, number: int) -> str:
        """How messages call a party."""
        return f"{self.owners[number - 1].name} (party {number})"

    @classmethod
    def load(cls, path: str | Path) -> Parties:
        """Read and check a parties' file."""
        return cls(*read_parties(Path(path)))


def read_parties(path: Path) -> tuple[tuple[Party, ...], int]:
    """What stands in the file so far: it grows by one owner after the other."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TogetherError(f"{path}: larger than any parties' file; expected at most {MAX_BYTES} bytes.")
        found: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise TogetherError(f"{path}: it cannot be read ({error.strerror}). `hedgerow together init` writes it.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TogetherError(f"{path}: not a parties' file: {str(error)[:100]}. `hedgerow together init` writes it.") from error
    owners = found.pop("party", [])
    tolerated = found.pop("tolerated", 1)
    known = {"name", "address", "certificate"}
    if found or not isinstance(owners, list) or any(not isinstance(each, dict) or set(each) != known for each in owners):
        raise TogetherError(
            f"{path}: expected tolerated = 1 and for each owner [[party]] with name, address and certificate, nothing else."
        )
    return tuple(checked_party(**each) for each in owners), tolerated


def checked_party(name: Any, address: Any, certificate: Any) -> Party:
    """A party as somebody wrote it, every field checked."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise TogetherError(f"parties: expected a name of 1 to {MAX_NAME} printable characters, got {str(name)[:40]!r}.")
    host, _, port = str(address).rpartition(":")
    if not isinstance(address, str) or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 2**16:
        raise TogetherError(f"parties: the address of {name!r} is {str(address)[:40]!r}; expected host:port, such as a.example:7701.")
    if not isinstance(certificate, str):
        raise TogetherError(f"parties: the certificate of {name!r} is no text; expected PEM, as `hedgerow together init` writes it.")
    party = Party(name, address, certificate)
    _ = party.fingerprint  # refuses what is none
    return party


def check_new(path: Path, name: str, address: str) -> tuple[Party, ...]:
    """Those in the file so far; refused if the name or the address is among them."""
    before = read_parties(path)[0] if path.exists() else ()
    if any(each.name == name or each.address == address for each in before):
        raise TogetherError(f"{path}: the name {name!r} or the address {address!r} is there already. Choose another.")
    return before


def add_party(path: Path, party: Party, tolerated: int = 1) -> int:
    """Write one more owner at the end of the file, which is begun with that t if there is none; its number."""
    begun = path.exists()
    before = check_new(path, party.name, party.address)
    fields = f"name = {json.dumps(party.name, ensure_ascii=False)}\naddress = {json.dumps(party.address, ensure_ascii=False)}"
    head = "" if begun else HEAD.format(tolerated=tolerated)
    with open(path, "a", encoding="utf-8") as file:
        file.write(f'{head}\n[[party]]\n{fields}\ncertificate = """\n{party.certificate.strip()}\n"""\n')
    return len(before) + 1
