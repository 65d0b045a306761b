"""The analyst's client: datasets and remaining budgets, quotes; then forests, counts and scores."""

from __future__ import annotations

import json
import math
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec

from hedgerow.accounting.loss import MOST_MEANT, exact_delta, exact_epsilon, text_of_fraction
from hedgerow.errors import CuratorError, PlanError, SeenRowsWarning
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.remote.jobs import Job, release_of
from hedgerow.remote.owner import Owner
from hedgerow.remote.remote_table import RemoteTable
from hedgerow.remote.responses import Dataset, DatasetSummary, Predictions, Quote, parsed_response
from hedgerow.remote.seen_rows import seen_rows
from hedgerow.remote.transport import Transport, path_segment

DIGITS = 12  # of an amount that a service takes
UNSURE = "unsure"  # of an error: the service may have taken the request; what was wrong is its cause
AT_ONCE = 1000  # rows of one request for predictions


def connect(url: str, token: str, *, timeout: float = 60, look_timeout: float = 3600) -> Connection:
    """The service of a data owner, for whoever has a token.

    timeout: seconds without a sign of life after which a request has failed; look_timeout: after which a query of a session has
    """
    return Connection(Transport(url, token, timeout, look_timeout=look_timeout))


class Connection:
    """One service. `owner` has what only its owners may do. Nothing is sent before a method is called."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    @property
    def url(self) -> str:
        """The address of the service."""
        return self.transport.url

    @cached_property
    def owner(self) -> Owner:
        return Owner(self.transport)

    # ------------------------------------------------------------ free

    def datasets(self) -> tuple[DatasetSummary, ...]:
        """Those that you may use."""
        with parsed_response(self.url):
            return tuple(DatasetSummary.read(found) for found in self.transport.json("GET", "/v1/datasets")["datasets"])

    def dataset(self, name: str) -> Dataset:
        """Its schema, and what is left for each purpose that it is granted for."""
        with parsed_response(self.url):
            return Dataset.read(self.transport.json("GET", f"/v1/datasets/{path_segment(name)}"))

    def quote(
        self, name: str, algorithm: str = "hedgerow", *, epsilon: Any, delta: Any = 0, purpose: str | None = None, rows: int | None = None,
        **settings: Any,
    ) -> Quote:  # fmt: skip
        """What a forest would cost. rows: how many to assume where the schema declares none."""
        body = self._forest(name, algorithm, epsilon, delta, purpose, settings)
        with parsed_response(self.url):
            body = body if rows is None else {**body, "rows": rows}
            return Quote.read(self.transport.json("POST", f"/v1/datasets/{path_segment(name)}/quote", body, repeatable=True))

    def dummy(
        self, name: str, algorithm: str = "hedgerow", *, epsilon: Any, delta: Any = 0, purpose: str | None = None, **settings: Any
    ) -> Release:
        """The same request on rows that are made from the schema alone: its certificate says so, and claims nothing."""
        body = self._forest(name, algorithm, epsilon, delta, purpose, settings)
        with parsed_response(self.url):
            found = self.transport.json("POST", f"/v1/datasets/{path_segment(name)}/dummy", body, repeatable=True)["release"]
            return Release.from_json(json.dumps(found).encode(), self.url)

    def jobs(self, name: str) -> Iterator[Job]:
        """Your jobs on a dataset, newest first; an owner sees everybody's."""
        before = ""
        while True:
            with parsed_response(self.url):
                page = self.transport.json("GET", f"/v1/datasets/{path_segment(name)}/jobs?most=100{before}")
                jobs, last = [Job.read(self.transport, found) for found in page["jobs"]], page["before"]
            yield from jobs
            if last is None or not jobs:
                return
            before = f"&before={int(last)}"

    def job(self, id: str) -> Job:
        """A job by its id: one that was sent before, perhaps by another program."""
        return Job.read(self.transport, self.transport.json("GET", f"/v1/jobs/{path_segment(id)}"))

    def release(self, id: str) -> Release:
        """One of your own, by the id of its job."""
        return release_of(self.transport, id)

    def predict(self, id: str, rows: Any) -> Predictions:
        """Classes of rows, by one of your releases at the service: a data frame, a mapping of columns, or mappings of values.

        The rows are sent there, and not kept. (`release(id).predict` does the same here, and sends nothing.)
        """
        plain = [{str(name): _plain(value) for name, value in row.items()} for row in _rows(rows)]
        found = []
        for first in range(0, len(plain), AT_ONCE):
            body = {"rows": plain[first : first + AT_ONCE]}
            with parsed_response(self.url):
                answer = self.transport.json("POST", f"/v1/releases/{path_segment(id)}/predict", body, repeatable=True)
                found.append(Predictions.read(answer))
        if not found:
            raise CuratorError("rows: got none; expected at least one.")
        predictions = tuple(value for each in found for value in each.predictions)
        return Predictions(found[0].classes, predictions, tuple(shares for each in found for shares in each.probabilities))

    # ------------------------------------------------------------ paid for

    def forest(
        self, name: str, algorithm: str = "hedgerow", *, epsilon: Any, delta: Any = 0, purpose: str | None = None, key: str | None = None,
        **settings: Any,
    ) -> Job:  # fmt: skip
        """Pay for a forest. purpose: may be left out where only one is granted; key: that of a request sent before, to go on with it."""
        return self._submit(name, "forests", self._forest(name, algorithm, epsilon, delta, purpose, settings), key)

    def score(
        self, name: str, release: str | Job, *, epsilon: Any, purpose: str | None = None, key: str | None = None,
        metrics: Sequence[str] = ("accuracy",),
    ) -> Job:  # fmt: skip
        """Pay for a private score of one of your releases, given by its job or the id of that, on the rows of a dataset.

        Take a dataset whose rows it has not seen: of its own a warning says, before it is charged, that they flatter it.
        A job counts the confusion matrix. For others, or a release itself: `private_score(release, connection.table(name), …)`.
        """
        here = f"private_score(release, connection.table({name!r}), epsilon=…, metrics=…)"
        id = release.id if isinstance(release, Job) else release
        if not isinstance(id, str):
            kind = type(release).__name__
            raise PlanError(f"release: got a {kind}; expected the id of its job at the service, job.id. With the release itself: {here}.")
        if set([metrics] if isinstance(metrics, str) else metrics) - {"accuracy", "recall", "precision"}:
            raise PlanError(f"metrics: got {metrics!r}; a job tells accuracy, recall and precision alone. For the AUC and others: {here}.")
        body = {"purpose": self.purpose(name, purpose), "epsilon": _epsilon(epsilon), "release": id}
        with suppress(CuratorError):  # what is wrong with the id is told when the request is sent
            if (release if isinstance(release, Job) else self.job(id)).dataset == name:
                warnings.warn(seen_rows(name), SeenRowsWarning, stacklevel=2)
        return self._submit(name, "scores", body, key)

    def counts(
        self, name: str, plan: PublicPlan, *, epsilon: Any = None, purpose: str | None = None, key: str | None = None,
        together: str | None = None,
    ) -> Job:  # fmt: skip
        """Pay for noisy counts in the trees of a shared plan. The plan fixes the ε; one above 10 must be repeated in `epsilon`.

        together: services count together, with the noise of one; 32 random hexadecimal digits, the same in the requests to all of them
        """
        document = json.loads(msgspec.json.encode(replace(plan, signatures=()).document()))  # one more would make it another request
        body = {"purpose": self.purpose(name, purpose), "plan": document, **({} if together is None else {"together": together})}
        return self._submit(name, "counts", body if epsilon is None else {**body, "epsilon": _epsilon(epsilon)}, key)

    def table(self, name: str, purpose: str | None = None, bins: int = 5) -> RemoteTable:
        """The dataset as a private table: every grower runs on it unchanged, while the rows stay with their owner."""
        found = self.dataset(name)
        purposes = tuple(found.purposes)
        return RemoteTable.of(self.transport, dataset=name, schema=found.schema, purposes=purposes, purpose=purpose, bins=bins)

    def purpose(self, name: str, purpose: str | None) -> str:
        """What is given, or the only one that is granted."""
        return purpose if purpose is not None else the_only_purpose(self.dataset(name))

    def _forest(self, name: str, algorithm: str, epsilon: Any, delta: Any, purpose: str | None, settings: dict[str, Any]) -> dict[str, Any]:
        given = {setting: _plain(value) for setting, value in settings.items() if value is not None}
        amounts = {"epsilon": _epsilon(epsilon), "delta": text_of_fraction(exact_delta(delta))}
        return {"purpose": self.purpose(name, purpose), **amounts, "algorithm": algorithm, "settings": given}

    def _submit(self, name: str, what: str, body: dict[str, Any], key: str | None) -> Job:
        used = key if key is not None else str(uuid.uuid4())
        try:
            found = self.transport.json("POST", f"/v1/datasets/{path_segment(name)}/{what}", body, key=used)
        except CuratorError as error:
            if error.status:
                raise
            again = f"It may have been taken and paid for: send it again with key={used!r}, and nothing is paid twice."
            raise CuratorError(f"{error} {again}", code=UNSURE) from error
        return Job.read(self.transport, found, used)

    def close(self) -> None:
        """Close the connections that are kept."""
        self.transport.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"


def the_only_purpose(dataset: Dataset) -> str:
    granted = sorted(dataset.purposes)
    if len(granted) == 1:
        return granted[0]
    found = f"it is granted for {', '.join(map(repr, granted))}" if granted else "nothing was paid for any purpose yet"
    raise CuratorError(f"purpose: the dataset {dataset.name!r} has no single one: {found}. Say which: purpose=….")


def _rows(rows: Any) -> Iterable[Mapping[str, Any]]:
    """Row by row, whether they come so or as columns."""
    if hasattr(rows, "columns") or hasattr(rows, "column_names"):
        import narwhals as nw

        rows = nw.from_native(rows, eager_only=True).to_dict(as_series=False)
    if isinstance(rows, Mapping):
        return [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    return rows  # type: ignore[no-any-return]


def _epsilon(value: Any) -> str:
    """As exact text. A ledger takes short numbers alone, and a float that was computed is often none: 0.1 + 0.2."""
    if isinstance(value, float) and len(repr(float(value)).replace(".", "").strip("0")) > DIGITS and math.isfinite(value):
        meant = Fraction(value).limit_denominator(MOST_MEANT)
        said = text_of_fraction(meant) if abs(meant - Fraction(value)) < 1e-12 else f"{value:.6f}"
        raise PlanError(
            f'epsilon: got {value!r}; expected at most {DIGITS} digits at a service. Perhaps you mean "{said}": write it as text.'
        )
    return text_of_fraction(exact_epsilon(value))


def _plain(value: Any) -> Any:
    """A value as JSON has it: of NumPy's scalars the number, of what is not a number null."""
    value = value.item() if hasattr(value, "item") and not isinstance(value, (str, bytes)) else value
    return None if isinstance(value, float) and value != value else value
