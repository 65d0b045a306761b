"""Request models: every field with its type and bound, and no others."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from hedgerow.curator.http.amounts import Amount, AmountFromZero
from hedgerow.curator.ledger.checks import LONGEST_NAME, LONGEST_TEXT, checked_new_name, checked_text, unsafe_to_show
from hedgerow.errors import LedgerError

PLAIN = "without control characters and such as turn the direction of writing"


def _name(value: str) -> str:
    try:
        return checked_new_name(value, "name")
    except LedgerError:
        raise ValueError(f"expected 1 to {LONGEST_NAME} characters without blanks around them, {PLAIN}") from None


def _text(value: str) -> str:
    try:
        return checked_text(value, "text")
    except LedgerError:
        raise ValueError(f"expected at most {LONGEST_TEXT} characters that UTF-8 can write") from None


def _note(value: str) -> str:
    if unsafe_to_show(_text(value)):
        raise ValueError(f"expected a line {PLAIN}")
    return value


Name = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_name)]
Text = Annotated[StrictStr, Field(max_length=LONGEST_TEXT), AfterValidator(_text)]
Note = Annotated[StrictStr, Field(max_length=LONGEST_TEXT), AfterValidator(_note)]
Count = Annotated[StrictInt, Field(ge=1, le=2**31)]
Number = Annotated[StrictInt, Field(ge=0, lt=2**32)]
MOST_FIELD = 10_000  # bytes of a field beside a plan
Algorithm = Literal["hedgerow", "snr", "rdt", "dpdf", "diffpid3", "private-id3"]


class RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Settings(RequestModel):
    """Settings of an algorithm, by the estimator's names; one that it does not have is refused."""

    bins: Count | None = None
    n_estimators: Count | None = None
    max_depth: Count | None = None
    max_leaves: Count | None = None
    min_rows: Count | None = None
    most_rows: Count | None = None
    max_passes: Count | None = None
    numeric_splits: Literal["bins", "thresholds"] | None = None
    noise_rule: Literal["paper", "tight"] | None = None
    stopping_rule: Literal["ours", "literal"] | None = None
    vote: Literal["confidence", "majority", "sum"] | None = None
    criterion: Literal["gini", "max", "information_gain", "gini_half"] | None = None
    random_state: Number | None = None

    def given(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class Forest(RequestModel):
    """A forest, as it is requested, quoted and tried."""

    purpose: Name
    epsilon: Amount
    delta: AmountFromZero = "0"
    algorithm: Algorithm = "hedgerow"
    settings: Settings = Settings()


class Quote(Forest):
    """rows: how many to assume where the schema declares none."""

    rows: Count | None = None


class Score(RequestModel):
    """release: the id of one of the asker's own releases, with the schema of the dataset."""

    purpose: Name
    epsilon: Amount
    release: Name


class Counts(RequestModel):
    """plan: the document of a shared plan, as JSON. Its own ε is charged; one above 10 must be repeated in `epsilon`.

    together: count with the other services of the parties' file; 32 random hexadecimal digits, the same in the requests to all of them
    """

    purpose: Name
    plan: dict[str, Any]
    epsilon: Amount | None = None
    together: Annotated[StrictStr, Field(pattern="^[0-9a-f]{32}$")] | None = None


class _RawCounts(msgspec.Struct, forbid_unknown_fields=True):
    purpose: msgspec.Raw = msgspec.Raw()
    plan: msgspec.Raw = msgspec.Raw()
    epsilon: msgspec.Raw = msgspec.Raw()
    together: msgspec.Raw = msgspec.Raw()


def counts_of(content: bytes) -> tuple[Counts, bytes]:
    """The body without its plan, and the plan as it was sent: a large one is never made into objects here."""
    try:
        parsed = msgspec.json.decode(content, type=_RawCounts)
        raw = {name: bytes(getattr(parsed, name)) for name in parsed.__struct_fields__}
        plan = raw.pop("plan").strip()
        given: dict[str, Any] = {name: json.loads(text) if len(text) <= MOST_FIELD else [] for name, text in raw.items() if text}
        return Counts.model_validate({**given, **({"plan": {} if plan.startswith(b"{") else None} if plan else {})}), plan
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    except (ValueError, RecursionError) as error:
        message = str(error) if isinstance(error, msgspec.ValidationError) else "JSON decode error"
        raise RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": message}]) from None


class Rows(RequestModel):
    """Rows to predict: in each a value for every declared column; null where it is missing."""

    rows: Annotated[list[dict[str, Any]], Field(min_length=1)]


class NewSession(RequestModel):
    """Queries that share one reservation; bins: cells of numeric attributes without edges; what: a note for the ledger."""

    purpose: Name
    epsilon: Amount
    delta: AmountFromZero = "0"
    bins: Count = 5
    what: Annotated[Note, Field(max_length=100)] = ""


class NewDataset(RequestModel):
    """path, or database with table or query; the schema as TOML."""

    name: Name
    path: Text | None = None
    database: Text | None = None
    table: Text | None = None
    query: Text | None = None
    toml: Annotated[StrictStr, Field(alias="schema")]


class Ceiling(RequestModel):
    """Of the whole dataset, or of one analyst, or of one purpose."""

    epsilon: AmountFromZero
    delta: AmountFromZero = "0"
    analyst: Name | None = None
    purpose: Name | None = None
    what: Note = ""


class Close(RequestModel):
    what: Note = ""


class NewPerson(RequestModel):
    name: Name
    role: Literal["owner", "analyst"] = "analyst"


class NewToken(RequestModel):
    person: Name
    days: Annotated[StrictInt, Field(ge=1, le=3650)] = 90


class Grant(RequestModel):
    """withdraw: take the purposes back, all of them where none is given."""

    analyst: Name
    dataset: Name
    purposes: Annotated[list[Name], Field(max_length=100)] = []
    withdraw: StrictBool = False
