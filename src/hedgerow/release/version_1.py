"""Releases of version 1, as they are read today: one table, its events in the certificate itself."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from hedgerow.accounting.loss import exact_sum, plain_fraction, text_of_fraction
from hedgerow.errors import ReleaseError
from hedgerow.release.certificate import certificate_of
from hedgerow.release.parts import NEIGHBOURS, UNIT, EventRecord, Part


class Certificate1(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    guarantee: str
    epsilon: str | None
    reason: str
    neighbours: str
    unit: str
    events: list[EventRecord]
    assumptions: list[str]
    sampler: str


class Tree1(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    attribute: list[int]
    branch: list[int]
    counts: list[int]


class Document1(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    made_by: str
    algorithm: str
    parameters: dict[str, str | int | float | bool | None]
    chosen: dict[str, str | int | float | bool | None]
    released: dict[str, int]
    vote: str
    schema: dict[str, Any]
    bins: int
    noise: list[str]
    certificate: Certificate1
    trees: list[Tree1]
    measured: str = "leaves"
    content_hash: str = ""


def from_version_1(data: bytes) -> dict[str, Any]:
    """The plain document of version 2. Its table is named by the hash of what was released: never by its rows."""
    document = msgspec.json.decode(data, type=Document1)
    unhashed = msgspec.json.encode(msgspec.structs.replace(document, content_hash=""))
    if hashlib.sha256(unhashed).hexdigest() != document.content_hash:
        raise ReleaseError("its content does not match its content hash: the file was changed or damaged. Get it again from its source.")
    plain: dict[str, Any] = msgspec.to_builtins(document)
    certificate, released, noise = plain["certificate"], plain.pop("released"), plain.pop("noise")
    events, sampler = certificate.pop("events"), certificate.pop("sampler")
    try:
        spent = text_of_fraction(exact_sum(plain_fraction(event["epsilon"]) for event in events))
        plain_fraction(certificate["epsilon"] or "1")
    except (ValueError, ZeroDivisionError) as error:
        raise ReleaseError(f"its schema, noise or certificate is not sound: {error}") from error
    if certificate["guarantee"] not in ("epsilon-DP", "none") or (certificate["guarantee"] == "none") != (certificate["epsilon"] is None):
        raise ReleaseError("its schema, noise or certificate is not sound: it states an ε but claims no guarantee, or the reverse")
    if certificate["guarantee"] != "none" and (certificate["neighbours"], certificate["unit"]) != (NEIGHBOURS, UNIT):
        raise ReleaseError("its schema, noise or certificate is not sound: it claims ε under other neighbours")
    part = {
        "id": document.content_hash[:32],
        "owner": "",
        "epsilon": certificate["epsilon"] or spent,
        "events": events,
        "sampler": sampler,
        "assumptions": certificate["assumptions"],
        "problem": "" if certificate["guarantee"] == "epsilon-DP" else certificate["reason"] or "none was claimed",
        "released": released,
        "made_by": document.made_by,
        "counting": 1,
    }
    if events:
        plain["certificate"] = msgspec.to_builtins(certificate_of([msgspec.convert(part, type=Part)]))
    else:
        certificate["parts"] = []
    columns = list(document.schema["attributes"]) if isinstance(document.schema.get("attributes"), dict) else []
    plain["ensembles"] = [{"trees": len(document.trees), "columns": columns, "noise": noise}]
    plain["version"] = 2
    return plain
