"""A dataset at an owner's service, as the commands use it: releases that the service makes and signs, and what is left there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow import formatting
from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.cli.console import one_line, progress_bar, say, warn
from hedgerow.cli.tables import who_signed
from hedgerow.errors import BudgetError, CuratorError, HedgerowError, PlanError, SchemaError

if TYPE_CHECKING:
    from hedgerow.cli.budget_source import RequestBudget
    from hedgerow.cli.options import ForestOptions
    from hedgerow.release.public_plan import PublicPlan
    from hedgerow.release.release import Release
    from hedgerow.remote.connection import Connection
    from hedgerow.remote.jobs import Job
    from hedgerow.remote.remote_table import RemoteTable
    from hedgerow.remote.request_file import RequestFile
    from hedgerow.remote.responses import Dataset
    from hedgerow.schema.schema import Schema

NOT_FOUND, MOST_NAMED = 404, 10  # a status; datasets that are listed
UNSURE = "unsure"  # a code: it may have been taken
Submit = Callable[[str], "Job"]  # with a key


@dataclass
class ServiceDataset:
    """public: what the service says of it, such as its schema and whose rows they are; named: the purpose, where one was named;
    request: to the service, kept until its answer is saved; fetched: whether the answer was there already, and nothing is paid
    """

    connection: Connection
    public: Dataset
    named: str | None
    request: RequestFile | None = field(default=None, init=False)
    fetched: bool = field(default=False, init=False)

    @classmethod
    def at(cls, url: str, purpose: str | None) -> ServiceDataset:
        """Costs nothing."""
        from hedgerow.remote.connection import connect
        from hedgerow.remote.places import place_of, token_for

        place = place_of(url)
        connection = connect(place.service, token_for(place, os.environ))
        try:
            return cls(connection, connection.dataset(place.dataset), purpose)
        except CuratorError as error:
            if error.status != NOT_FOUND:
                raise
            names = ", ".join(one_line(each.name) for each in connection.datasets()[:MOST_NAMED]) or "none"
            raise CuratorError(f"{error} Datasets that you may use: {names}.", error.status, error.code) from None

    @cached_property
    def table(self) -> RemoteTable:
        """As a private table, for one purpose: the one that was named, or the only one that is granted."""
        from hedgerow.remote.remote_table import RemoteTable

        public, purposes = self.public, tuple(self.public.purposes)
        return RemoteTable.of(self.connection.transport, public.name, public.schema, purposes, self.named)

    def makes(self, options: ForestOptions, schema: Schema) -> bool:
        """Whether the service makes such a forest itself, and signs it; others are grown here, from its answers."""
        same = schema == self.public.schema
        return same and not {"sensitivity", "as_published"} & options.settings.keys()

    def forest(self, options: ForestOptions, budget: RequestBudget, output: Path, again: bool) -> Release:
        """One that the service makes, for its price. again: a new one also where it has made such a forest before"""
        algorithm, settings = str(options.algorithm), options.plain
        asked = {"purpose": self.table.purpose, "algorithm": algorithm, **settings}
        epsilon, delta = settings.pop("epsilon"), settings.pop("delta", 0)

        def submit(key: str) -> Job:
            how = {"epsilon": epsilon, "delta": delta, "purpose": self.table.purpose, "key": key}
            return self.connection.forest(self.public.name, algorithm, **how, **settings)

        before = None if again else lambda: self._fitted_before(options, (exact_epsilon(epsilon), exact_delta(delta)))
        return self._release(
            f"fit {options.known.title}", exact_epsilon(epsilon), exact_delta(delta), budget, output, asked, submit, before
        )

    def _fitted_before(self, options: ForestOptions, loss: tuple[Fraction, Fraction]) -> Release | None:
        """A forest that the service has made already, as far as your last jobs tell: with the same settings, ε and δ."""
        from hedgerow.remote.seen_rows import FETCHED, LAST_JOBS

        what = (f"fit {options.algorithm}", self.table.purpose, loss[1])
        try:
            jobs = [job for job in islice(self.connection.jobs(self.public.name), LAST_JOBS) if job.result.startswith("/v1/releases/")]
            alike = [job for job in jobs if (job.what, job.purpose, job.cost.delta) == what][:FETCHED]
            fetched = ((job, self.connection.release(job.id)) for job in alike)
            job, found = next((each for each in fetched if self._is_such(each[1], options, loss)), (None, None))
        except HedgerowError:
            return None  # what is wrong is told when the request is sent
        if job is None:
            return None
        made = f"the service has made this forest already, for {one_line(job.purpose)!r} (its job {one_line(job.id)})"
        if "random_state" in options.settings:
            raise PlanError(
                f"--seed: {made}, perhaps with another seed, which a forest does not tell. Nothing was charged. Leave --seed out to fetch "
                "it, or add --again to pay for another one."
            )
        say(f"{made}: it is fetched, and nothing is paid. To pay for another one, with other noise or of rows that came since, add --again")
        return found

    def grow_once(self, asked: Sequence[Any], again: bool) -> None:
        """A forest that is grown here, from the answers of a session. Refused where one of your last ones there was for the same.

        asked: all that makes it the same fit
        again: then it is paid for all the same
        """
        from hedgerow.remote.request_file import digest
        from hedgerow.remote.seen_rows import LAST_JOBS

        self.table.asked = f"request {digest(self._address, {'purpose': self.table.purpose, 'asked': list(asked)})[:12]}"
        if again:
            return
        jobs = islice(self.connection.jobs(self.public.name), LAST_JOBS)
        paid = next((job for job in jobs if job.what.endswith(self.table.asked) and (job.cost.epsilon or job.cost.delta)), None)
        if paid is not None:
            raise PlanError(
                f"the service was paid for this very fit already ({one_line(paid.what)}: {paid.cost}). Nothing was charged. Use the "
                "forest that was saved then: it was grown here, and the service has none. If it was not saved or is lost, if the rows are "
                "others now, or to pay for one with other noise, add --again."
            )

    def _is_such(self, release: Release, options: ForestOptions, loss: tuple[Fraction, Fraction]) -> bool:
        """Whether a release is what the options ask for, in all that a release tells: all but its seed."""
        from hedgerow.schema.toml import same_columns

        recipe, certificate = options.recipe(), release.certificate
        algorithm = recipe.algorithm
        told = {**algorithm.defaults, **release.parameters}  # what is not stated is the default
        limits = {"max_leaves"} - set(options.settings)  # a service has its own
        return (
            (Fraction(certificate.epsilon or 0), Fraction(certificate.delta or 0)) == loss
            and release.vote == algorithm.method.vote_of(recipe)
            and all(
                told[name] == value for name, value in {**recipe.settings, "bins": recipe.bins}.items() if name not in {"vote", *limits}
            )
            and same_columns(release.schema, self.public.schema)
        )

    def counts(self, plan: PublicPlan, epsilon: str | None, budget: RequestBudget, output: Path, again: bool) -> Release:
        """Counts in the trees of a plan: the service says whose they are. again: new ones also where it has made such counts before"""
        from hedgerow.remote.federation import differences

        def submit(key: str) -> Job:
            return self.connection.counts(self.public.name, plan, epsilon=epsilon, purpose=self.table.purpose, key=key)

        asked = {"purpose": self.table.purpose, "plan": plan.content_hash, "epsilon": epsilon}
        before = None if again else lambda: self._counted_before(plan)
        found = self._release(f"count {plan.algorithm}", plan.epsilon, plan.delta, budget, output, asked, submit, before)
        if wrong := differences(found, plan):
            warn(f"what the service has sent is not an answer to the plan: {wrong} Ask its owner what went wrong.")
        return found

    def _counted_before(self, plan: PublicPlan) -> Release | None:
        """Counts that the service has made for you already, as far as your last jobs tell: with new ones they could not be merged."""
        from hedgerow.remote.federation import differences
        from hedgerow.remote.seen_rows import FETCHED, LAST_JOBS

        cost, what = (plan.epsilon, plan.delta), f"count {plan.algorithm}"
        try:
            jobs = [job for job in islice(self.connection.jobs(self.public.name), LAST_JOBS) if job.result.startswith("/v1/releases/")]
            for job in [job for job in jobs if job.what == what and (job.cost.epsilon, job.cost.delta) == cost][:FETCHED]:
                if not differences(found := self.connection.release(job.id), plan):
                    say(
                        f"the service has made these counts for you already, for {one_line(job.purpose)!r} (its job {one_line(job.id)}): "
                        "they are fetched, and nothing is paid. To have the rows counted anew, and pay for it, add --again"
                    )
                    return found
        except HedgerowError:
            pass  # what is wrong is told when the request is sent
        return None

    def _release(
        self, what: str, epsilon: Fraction, delta: Fraction, budget: RequestBudget, output: Path, asked: dict[str, Any], submit: Submit,
        made_before: Callable[[], Release | None] | None = None,
    ) -> Release:  # fmt: skip
        """What the service makes of a request that it is paid for, with its signature. A budget file is charged as well.

        made_before: what a new request would ask for and is paid for already, if there is such
        """
        from hedgerow.accounting.units import Unit
        from hedgerow.release.release import Release

        unit, request = Unit.of(self.public.schema), self._opened(output, what, epsilon, delta, asked)
        if not request.resumed:
            with _given_up(request):
                if made_before is not None and (before := made_before()) is not None:
                    self.fetched = True
                    request.forget()
                    return before
                budget.check_room(epsilon, what, delta, unit)  # nothing may be refused here that was paid for there
        again = f"Run the same command again to fetch it: {request.path} has the key of the request, and nothing is paid twice."
        budget.sent = f"The service may have taken the request, and then goes on with it. {again}"
        self._check_known(request, budget)
        job = _submitted(request, submit, budget)
        request.taken(job.id)
        budget.sent = f"The service goes on with what it is paid for (its job {one_line(job.id)}). {again}"
        try:
            reservation = budget.reserve_once(request.key, epsilon, what, delta, unit)
        except BudgetError as error:  # somebody else was quicker, and the service is paid already
            warn(f"the service has charged this request, and the budget file could not: {error}")
            reservation = None
        try:
            with progress_bar("counting") as progress:
                found = job.wait(progress)
        except CuratorError as error:
            if error.code == "failed":  # it has no answer, and never will
                budget.sent = ""
                request.forget()
                if error.charged is False:
                    budget.give_back(reservation)
            else:
                budget.sent = (
                    f"Whether the service goes on with its job {one_line(job.id)} is not known: what it had not begun when it stopped is "
                    f"given back, and costs nothing; what it had begun may be lost, and has cost {formatting.loss(epsilon, delta)}. {again}"
                )
            raise
        assert isinstance(found, Release)
        self.request = request
        if reservation is not None:
            with suppress(BudgetError):  # then the whole stays spent, and the release is kept all the same
                reservation.charge(*(event.as_charged for event in found.certificate.events))
                reservation.settle()
        return found

    def _check_known(self, request: RequestFile, budget: RequestBudget) -> None:
        """A request that the service has taken, and does not know any more, is not sent again."""
        from hedgerow.remote.request_file import forgotten

        if not request.job:
            return
        try:
            self.connection.job(request.job)
        except CuratorError as error:
            if error.status != NOT_FOUND:
                raise
            budget.sent = ""
            raise forgotten(self.connection.url, f"its job {one_line(request.job)}", request.path) from None

    @contextmanager
    def going_on(
        self, output: Path, what: str, epsilon: Fraction, budget: RequestBudget, asked: dict[str, Any], again: bool = True
    ) -> Iterator[None]:
        """Queries of a session in here are one request: its key and its answers are kept beside the output, so that the same command goes
        on with it. A budget file is charged once. again: False takes the answers of a request that was answered before (`shown`)
        """
        from hedgerow.accounting.units import Unit
        from hedgerow.remote.kept_answers import KeptAnswers
        from hedgerow.remote.request_file import FORGOTTEN
        from hedgerow.remote.session import LOST

        named = self._named(epsilon, asked)
        request = self._opened(output, what, epsilon, Fraction(0), named, again)
        if not request.resumed:
            with _given_up(request):
                budget.check_room(epsilon, what, Fraction(0), Unit.of(self.public.schema))
        with closing(KeptAnswers(request)) as kept:
            self.table.kept, budget.request_key = kept, request.key
            budget.sent = (
                f"Run the same command again to go on: {request.path} has the key of the request and the answers so far. Nothing that was "
                "answered is paid twice."
            )
            try:
                yield
            except BaseException as error:
                lost = isinstance(error, CuratorError) and error.code == LOST
                if isinstance(error, CuratorError) and error.code == FORGOTTEN:
                    budget.sent = ""
                if lost or (not request.resumed and (kept.free or not kept.asked)):
                    budget.sent = ""
                    request.forget()
                    if not lost:
                        budget.cost_nothing()
                raise
            self.request = request

    def beside(self, folder: Path, what: str, epsilon: Fraction, asked: dict[str, Any]) -> Path:
        """Where the answers of one request are kept, whatever is made of them: by all that it asks for."""
        from hedgerow.remote.request_file import digest

        return folder / f"{what}-{digest(self._address, self._named(epsilon, asked))[:12]}"

    def _named(self, epsilon: Fraction, asked: dict[str, Any]) -> dict[str, Any]:
        return {"purpose": self.table.purpose, "epsilon": str(epsilon), **asked}

    @property
    def _address(self) -> str:
        return f"{self.connection.url}/datasets/{self.public.name}"

    def _opened(
        self, output: Path, what: str, epsilon: Fraction, delta: Fraction, asked: dict[str, Any], again: bool = True
    ) -> RequestFile:
        from hedgerow.remote.request_file import RequestFile

        request = RequestFile.open(output, self._address, f"{what}, {formatting.loss(epsilon, delta)}", asked, again)
        if request.answered:
            say("this was paid for before: its answers are taken, and nothing is paid. To ask and pay anew, add --again")
        elif request.resumed:
            say(f"going on with the request of an earlier run: {request.path} has its key. With the same token nothing is paid twice")
        return request

    def saved(self) -> None:
        """What the request was paid for is on disk."""
        if self.request is not None:
            self.request.forget()

    def shown(self) -> None:
        """What the request was paid for was shown: its answers stay, so that the same command shows it again."""
        if self.request is not None:
            self.request.keep()

    def check_scored(self, release: Release, training_rows: bool) -> None:
        """Before a score is paid for: refuse a forest with another schema, and one that was trained on these very rows.

        training_rows: the user knows that, and wants the score all the same (private_score warns of it)
        """
        from hedgerow.remote.seen_rows import trained_on
        from hedgerow.schema.toml import same_columns

        if not same_columns(release.schema, self.public.schema):
            raise SchemaError(
                f"forest: it was trained with another schema than that of {one_line(self.public.name)!r}; expected a forest of a table "
                "with the same columns, values and bounds. Nothing was charged."
            )
        if not training_rows and trained_on(self.connection, self.public.name, release):
            raise PlanError(
                f"this forest was trained on the rows of {one_line(self.public.name)!r} themselves, which flatter it. Nothing was charged. "
                "For a fair score take a dataset with other rows, if the service has one; to pay for this one all the same, add "
                "--training-rows."
            )

    def print_signer(self, release: Release) -> None:
        """By whom, or why by nobody."""
        if release.signatures:
            keys = (signature.key for signature in release.signatures)
            say(f"signed by {who_signed(keys)}: `hedgerow verify` checks it against the public key of the service (--trust)")
        elif self.public.signed_with is not None:
            say("not signed by the service: it was put together here, from its answers, as no request to it can name what you asked for")

    def print_left(self, budget: RequestBudget) -> None:
        """After a request. It is paid for, so that nothing may fail any more."""
        from hedgerow.accounting.budget_file import BudgetFile

        if self.fetched and isinstance(budget, BudgetFile):
            say(f"{budget.name} was not charged now: what this has cost was paid before")
        elif isinstance(budget, BudgetFile):
            say(f"charged twice, as you asked: in the service's ledger, and in {budget.name}. The first would do: leave --budget out")
        try:
            left = self.connection.dataset(self.public.name).purposes[self.table.purpose]
        except (HedgerowError, KeyError):
            return
        say(f"left for you at the service, for {one_line(self.table.purpose)!r}: {formatting.loss(left.epsilon, left.delta)}")


@contextmanager
def _given_up(request: RequestFile) -> Iterator[None]:
    """What is refused in here was never sent."""
    try:
        yield
    except HedgerowError:
        request.forget()
        raise


def _submitted(request: RequestFile, submit: Submit, budget: RequestBudget) -> Job:
    """The job. A new request that is refused has cost nothing, and is forgotten; one that an earlier run has sent may be paid for. So may
    one that meets a busy service: it may have been sent twice, after a connection was lost, and have been taken the first time.
    """
    from hedgerow.remote.request_file import refused

    try:
        return submit(request.key)
    except HedgerowError as error:
        status, code = (error.status, error.code) if isinstance(error, CuratorError) else (400, "")
        if code == UNSURE and isinstance(error.__cause__, CuratorError):
            raise error.__cause__ from None  # the key is kept: nobody need be told of it
        if code == "key_used":
            raise CuratorError(f"{error} If its answer is not to be had any more, give it up: rm {request.path}", status, code) from None
        if not request.resumed and refused(error):
            budget.sent = ""
            request.forget()
        raise
