"""A dataset at an owner's service, as the commands use it: releases that the service makes and signs, and what is left there."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from hedgerow import formatting
from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.cli.console import one_line, progress_bar, say, warn
from hedgerow.cli.tables import who_signed
from hedgerow.errors import BudgetError

if TYPE_CHECKING:
    from hedgerow.cli.budget_source import RequestBudget
    from hedgerow.cli.options import ForestOptions
    from hedgerow.release.public_plan import PublicPlan
    from hedgerow.release.release import Release
    from hedgerow.remote.connection import Connection
    from hedgerow.remote.jobs import Job
    from hedgerow.remote.remote_table import RemoteTable
    from hedgerow.remote.responses import Dataset
    from hedgerow.schema.schema import Schema

Submit = Callable[[str], "Job"]  # for a purpose


@dataclass
class ServiceDataset:
    """public: what the service says of it, such as its schema and whose rows they are; named: the purpose, where one was named"""

    connection: Connection
    public: Dataset
    named: str | None

    @classmethod
    def at(cls, url: str, purpose: str | None) -> ServiceDataset:
        """Costs nothing."""
        from hedgerow.remote.connection import connect
        from hedgerow.remote.places import place_of, token_for

        place = place_of(url)
        connection = connect(place.service, token_for(place, os.environ))
        return cls(connection, connection.dataset(place.dataset), purpose)

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

    def forest(self, options: ForestOptions, budget: RequestBudget) -> Release:
        """One that the service makes, for its price."""
        algorithm, settings = str(options.algorithm), options.plain
        epsilon, delta = settings.pop("epsilon"), settings.pop("delta", 0)

        def submit(purpose: str) -> Job:
            return self.connection.forest(self.public.name, algorithm, epsilon=epsilon, delta=delta, purpose=purpose, **settings)

        return self._release(f"fit {options.known.title}", exact_epsilon(epsilon), exact_delta(delta), budget, submit)

    def counts(self, plan: PublicPlan, epsilon: str | None, budget: RequestBudget) -> Release:
        """Counts in the trees of a plan: the service says whose they are."""
        from hedgerow.remote.federation import differences

        def submit(purpose: str) -> Job:
            return self.connection.counts(self.public.name, plan, epsilon=epsilon, purpose=purpose)

        found = self._release(f"count {plan.algorithm}", plan.epsilon, plan.delta, budget, submit)
        if wrong := differences(found, plan):
            warn(f"what the service has sent is not an answer to the plan: {wrong} Ask its owner what went wrong.")
        return found

    def _release(self, what: str, epsilon: Fraction, delta: Fraction, budget: RequestBudget, submit: Submit) -> Release:
        """What the service makes of a request that it is paid for, with its signature. A budget file is charged as well."""
        from hedgerow.accounting.units import Unit
        from hedgerow.release.release import Release

        unit = Unit.of(self.public.schema)
        budget.check_room(epsilon, what, delta, unit)  # nothing may be refused here that was paid for there
        job = submit(self.table.purpose)
        try:
            reservation = budget.reserve(epsilon, what, delta, unit)
        except BudgetError as error:  # somebody else was quicker, and the service is paid already
            warn(f"the service has charged this request, and the budget file could not: {error}")
            reservation = None
        try:
            with progress_bar("counting") as progress:
                found = job.wait(progress)
        except BaseException as error:
            if getattr(error, "code", "") != "failed":
                warn(f"the service goes on with what it is paid for. In Python: hedgerow.connect(…).job({one_line(job.id)!r}).wait()")
            raise
        assert isinstance(found, Release)
        if reservation is not None:
            with suppress(BudgetError):  # then the whole stays spent, and the release is kept all the same
                reservation.charge(*(event.as_charged for event in found.certificate.events))
                reservation.settle()
        return found

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
        from hedgerow.errors import HedgerowError

        if isinstance(budget, BudgetFile):
            say(f"charged twice, as you asked: in the service's ledger, and in {budget.name}. The first would do: leave --budget out")
        try:
            left = self.connection.dataset(self.public.name).purposes[self.table.purpose]
        except (HedgerowError, KeyError):
            return
        say(f"left for you at the service, for {one_line(self.table.purpose)!r}: {formatting.loss(left.epsilon, left.delta)}")
