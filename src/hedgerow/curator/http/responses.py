"""Response models, for the OpenAPI document. Amounts are exact, as text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hedgerow.curator.http.errors import CODES
from hedgerow.curator.ledger.accounts import Person, TokenRecord
from hedgerow.curator.ledger.chain import LedgerEntry

Exact = Annotated[str, Field(description="an exact number: a decimal or a fraction", examples=["0.5", "1/3"])]

Counted = Annotated[
    str | None,
    Field(
        description="what ε is counted in, for all accounts of the dataset; null until its first ceiling, or until its owner states it",
        examples=["row", "person: patient_id, at most 40 rows"],
    ),
]


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(ResponseModel):
    """Why something was refused or failed."""

    code: Annotated[str, Field(description="for programs", json_schema_extra={"enum": sorted(CODES)})]
    message: Annotated[str, Field(description="for people; it never depends on a row")]


class Error(ResponseModel):
    error: Problem


class Status(ResponseModel):
    status: str


class Amounts(ResponseModel):
    epsilon: Exact
    delta: Exact


class Purpose(ResponseModel):
    remaining: Annotated[Amounts, Field(description="what the tightest ceiling leaves")]


class Summary(ResponseModel):
    name: str
    closed: Annotated[bool, Field(description="its owner has ended the connection")]
    unit: Counted
    purposes: Annotated[dict[str, Purpose], Field(description="what it is granted for")]


class Datasets(ResponseModel):
    datasets: list[Summary]


class Dataset(Summary):
    owner: Annotated[str, Field(description="whose rows a release with counts says that it holds")]
    toml: Annotated[str, Field(alias="schema", description="attributes, domains and classes, as TOML")]
    signed_with: Annotated[str | None, Field(description="the public key that releases are signed with; null: they are not")] = None
    together: Annotated[str | None, Field(description="the owners with whom it counts together: names and certificates, hashed")] = None
    together_least: Annotated[int, Field(description="of these owners so many must come; 0: it counts with no others")] = 0
    together_name: Annotated[str | None, Field(description="its own name among these owners")] = None


class Event(ResponseModel):
    """A charge, and how often it is made."""

    verb: str
    mechanism: str
    times: int
    epsilon: Exact
    rho: Exact
    queries: int
    sensitivity: Exact
    scale: Exact


class Quoted(ResponseModel):
    cost: Amounts
    remaining: Amounts
    events: list[Event]
    plan: Annotated[list[list[str]], Field(description="the plan in words: what, and how much")]


class Dummy(ResponseModel):
    dummy: Literal[True]
    rows: int
    release: Annotated[dict[str, Any], Field(description="a release document, worth nothing")]


class Job(ResponseModel):
    """`result` when it is done, `error` when it failed; `cost` is what it has cost by then. A session has ended, and has no result."""

    id: str
    when: str
    dataset: str
    purpose: str
    what: str
    cost: Amounts
    state: Literal["waiting", "running", "done", "ended", "failed"]
    share: Annotated[float, Field(ge=0, le=1, description="of the pass over the rows that it is in")] = 0.0
    result: Annotated[str | None, Field(description="where the answer is")] = None
    error: Problem | None = None


class ListedJob(Job):
    analyst: str


class Jobs(ResponseModel):
    jobs: list[ListedJob]
    before: Annotated[int | None, Field(description="where the next page begins, if there may be one")]


class Predictions(ResponseModel):
    """For each row its class, and the probability of each of the classes."""

    classes: list[str | int | float | bool]
    predictions: list[str | int | float | bool]
    probabilities: list[list[float]]


class Session(ResponseModel):
    """coins: where the owner's noise comes from; secret: whether nobody can know it beforehand, which is always so but in tests."""

    id: str
    dataset: str
    purpose: str
    epsilon: Exact
    delta: Exact
    bins: int
    coins: str
    secret: bool


class Ended(ResponseModel):
    id: str
    state: Annotated[str, Field(description="settled; released where no row was looked at")]
    spent: Amounts


class Balance(ResponseModel):
    """None where an account has no ceiling of its own."""

    scope: Literal["dataset", "analyst", "purpose"]
    name: str
    epsilon: Exact | None
    delta: Exact | None
    spent: Exact
    spent_delta: Exact
    remaining: Exact | None
    remaining_delta: Exact | None


class Balances(ResponseModel):
    balances: list[Balance]
    unit: Counted


class OwnedDataset(Balances):
    name: str
    place: Annotated[dict[str, str | None], Field(description="a path; or a database with a table or a query")]
    closed: bool


class OwnedDatasets(ResponseModel):
    datasets: list[OwnedDataset]


class People(ResponseModel):
    people: list[Person]


class Tokens(ResponseModel):
    tokens: list[TokenRecord]


class NewToken(ResponseModel):
    token: Annotated[str, Field(description="shown this once")]
    id: str
    person: str
    made: str
    expires: str
    revoked: None = None


class Granted(ResponseModel):
    analyst: str
    dataset: str
    purposes: list[str]


class Entries(ResponseModel):
    entries: list[LedgerEntry]
    head: Annotated[str, Field(description="the number and the hash of the last entry of all")]


class Reservation(ResponseModel):
    id: str
    when: str
    dataset: str
    analyst: str
    purpose: str
    what: str
    epsilon: Exact
    delta: Exact
    opened: bool
    under_way: bool


class LostRequest(ResponseModel):
    """settled: by an older version. epsilon: what it has cost."""

    id: str
    when: str
    dataset: str
    analyst: str
    purpose: str
    what: str
    epsilon: Exact
    delta: Exact
    settled: bool
    reason: str


class LostRequests(ResponseModel):
    lost: list[LostRequest]


class Unsettled(ResponseModel):
    unsettled: list[Reservation]


class Verification(ResponseModel):
    sound: bool
    entries: int
    head: str
    problems: list[str]
