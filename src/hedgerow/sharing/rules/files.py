"""Rule sets in files: ours, with schema, certificate and hash; and plain ones that people or other programs write, as JSON or CSV.

    {"rules": [{"if": …, "counts": …}, …], "bins": 10}     plain JSON; `bins` may be left out
    name.csv                                               plain CSV (`csv_form.py`)
    {"format": "hedgerow-rule-set", …}                     ours

The rules have the same form in both kinds of JSON (`reading.py`). A file is untrusted until every check has passed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hedgerow.errors import HedgerowError, PlanError, ReleaseError
from hedgerow.release.certificate import Certificate
from hedgerow.release.document import RULE_SET_FORMAT, codebook_of
from hedgerow.release.files import HashedDocument, check_hash, read_document, signed_text, with_hash, write_document
from hedgerow.release.release import Release
from hedgerow.release.signing import Signature, sign
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import to_plain
from hedgerow.sharing.pseudo.decoding import same_meaning
from hedgerow.sharing.rules.csv_form import rules_of_csv
from hedgerow.sharing.rules.reading import FORMS, paths_of_rules
from hedgerow.sharing.rules.rule_set import BINS, RuleSet, check_claim

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

VERSION = 1
FIELDS = {"rules", "bins"}  # of a plain file


class RuleSetDocument(HashedDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our file, field by field."""

    format: str
    version: int
    made_by: str
    schema: dict[str, Any]
    bins: int
    certificate: Certificate
    rules: list[dict[str, Any]]
    at_values: bool | msgspec.UnsetType = msgspec.UNSET  # True where thresholds follow rows; elsewhere the file has no such field


class _Head(msgspec.Struct):
    """What tells files apart."""

    format: str = ""
    rules: msgspec.Raw = msgspec.Raw()


def is_rule_set(path: str | Path, data: bytes) -> bool:
    """Whether a file is meant to be a rule set; anything else is for the release to judge."""
    if _is_csv(path):
        return True
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError):
        return False
    return head.format == RULE_SET_FORMAT or (not head.format and bool(bytes(head.rules)))


def load_shared(path: str | Path, schema: Schema | None = None, bins: int | None = None) -> Release | RuleSet:
    """What an owner shared, or would: a tree or forest, or a rule set. A schema that is given must be its own."""
    data = read_document(path, "file")
    if is_rule_set(path, data):
        return _load(path, data, schema, bins)
    release = Release.from_json(data, str(path))
    _check_settings(release.codebook, schema, bins, str(path))
    return release


def load(path: str | Path, schema: Schema | None = None, bins: int | None = None) -> RuleSet:
    data = read_document(path, "rule set")
    if not is_rule_set(path, data):
        raise ReleaseError(
            f'{path}: it is no rule set; expected {{"rules": […]}}, or a name that ends in .csv. A tree: RuleSet.from_release.'
        )
    return _load(path, data, schema, bins)


def _load(path: str | Path, data: bytes, schema: Schema | None, bins: int | None) -> RuleSet:
    try:
        if not _is_csv(path) and msgspec.json.decode(data, type=_Head).format == RULE_SET_FORMAT:
            found = _from_document(_parse(data))
            _check_settings(found.codebook, schema, bins, "")
            return found
        return _from_plain(path, data, schema, bins)
    except HedgerowError as error:
        raise type(error)(f"{path}: {error}") from error


# ---------------------------------------------------------------- plain


def _from_plain(path: str | Path, data: bytes, schema: Schema | None, bins: int | None) -> RuleSet:
    if schema is None:
        raise PlanError(
            "it is not a sound release document; and plain rules do not say what their attributes are: expected their schema, too. Give "
            "--schema schema.toml (in Python: RuleSet.load(path, schema))."
        )
    if _is_csv(path):
        return RuleSet.of(schema, rules_of_csv(data, schema), BINS if bins is None else bins)
    plain = _json(data)
    if plain.keys() == {"target", "rules"}:
        raise PlanError(f"these are rules for people to read; expected {FORMS}. Write them with `hedgerow rules --format rule-set`.")
    if strange := plain.keys() - FIELDS:
        raise PlanError(f"rule set: got the field {min(strange)!r:.80}; expected only {' and '.join(sorted(FIELDS))}.")
    own = plain.get("bins")
    if own is not None and bins not in (None, own):
        raise PlanError(f"bins: got {bins}; the file itself says {own!r:.40}. Leave one of them out.")
    return RuleSet.of(schema, plain["rules"], own if own is not None else BINS if bins is None else bins)


def _json(data: bytes) -> dict[str, Any]:
    """No key twice, and no numbers that JSON does not have: one of two would be lost without a word."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise PlanError(f"rule set: {next(name for name in names if names.count(name) > 1)!r:.80} stands twice in one place.")
        return found

    def no_number(text: str) -> Any:
        raise PlanError(f"rule set: got {text}; expected a finite number.")

    try:
        return dict(json.loads(data, object_pairs_hook=once, parse_constant=no_number))
    except PlanError:
        raise
    except (ValueError, RecursionError) as error:
        raise PlanError(f"rule set: it is no sound JSON: {str(error)[:200]}") from error


# ---------------------------------------------------------------- ours


def document_of(rules: RuleSet) -> RuleSetDocument:
    check_claim(rules)
    draft = with_hash(
        RuleSetDocument(
            format=RULE_SET_FORMAT,
            version=VERSION,
            made_by=rules.made_by,
            schema=to_plain(rules.schema),
            bins=rules.codebook.bins,
            certificate=rules.certificate,
            rules=rules.rules,
            at_values=True if rules.at_values else msgspec.UNSET,
        )
    )
    return msgspec.structs.replace(draft, signatures=list(rules.signatures))


def json_of(rules: RuleSet) -> bytes:
    """A line for each field and for each rule: people read it, too."""
    lines = []
    for name, value in msgspec.to_builtins(document_of(rules)).items():
        text = msgspec.json.encode(value)
        if name == "rules":
            text = b"[\n  " + b",\n  ".join(map(msgspec.json.encode, value)) + b"\n ]"
        lines.append(b' "' + name.encode() + b'": ' + text)
    return b"{\n" + b",\n".join(lines) + b"\n}"


def save(rules: RuleSet, path: str | Path) -> None:
    if _is_csv(path):
        raise PlanError(f"output {str(path)!r}: a rule set is saved as JSON, with its schema; expected a name that ends in .json.")
    write_document(path, json_of(rules), "rule set")


def signature_of(rules: RuleSet, key: Ed25519PrivateKey) -> Signature:
    return sign(key, signed_text(RULE_SET_FORMAT, rules.content_hash))


def _parse(data: bytes) -> RuleSetDocument:
    try:
        document = msgspec.json.decode(data, type=RuleSetDocument)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"it is not a sound rule set: {str(error)[:200]}") from error
    if document.version != VERSION:
        raise ReleaseError(f"it has version {str(document.version)[:20]}; this program reads version {VERSION}. Install a newer hedgerow.")
    check_hash(document, RULE_SET_FORMAT)
    return document


def _from_document(document: RuleSetDocument) -> RuleSet:
    try:
        paths = paths_of_rules(codebook_of(document.schema, document.bins), document.rules)
        at_values, signatures = document.at_values is True, tuple(document.signatures)
        found = RuleSet(paths, document.certificate, at_values=at_values, made_by=document.made_by, signatures=signatures)
        same = document_of(found) == document
    except ReleaseError:
        raise
    except (HedgerowError, ValueError, ArithmeticError, RecursionError) as error:
        raise ReleaseError(f"its schema, rules or certificate are not sound: {str(error)[:300]}") from error
    if not same:
        raise ReleaseError("its rules are not written in the one form that they have in a document.")
    return found


def _check_settings(codebook: Codebook, schema: Schema | None, bins: int | None, source: str) -> None:
    """What is given beside a file that has its own must be the same."""
    prefix = f"{source}: " if source else ""
    if schema is not None and not same_meaning(schema, codebook.schema):
        raise PlanError(f"{prefix}its own schema has other columns, values, bounds or classes than the one given. Leave --schema out.")
    if bins is not None and bins != codebook.bins:
        raise PlanError(f"{prefix}bins: got {bins}; the file itself says {codebook.bins}. Leave --bins out.")


def _is_csv(path: str | Path) -> bool:
    return Path(path).name.lower().removesuffix(".gz").endswith(".csv")
