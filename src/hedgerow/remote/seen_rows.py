"""Whether a forest was trained on the rows of a dataset at a service: a score of it on those would be flattered, and is charged."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from hedgerow.errors import HedgerowError
from hedgerow.release.parts import Part, Together, source_at
from hedgerow.release.release import Release
from hedgerow.remote.places import source_of
from hedgerow.remote.responses import Dataset
from hedgerow.remote.transport import one_line

if TYPE_CHECKING:
    from hedgerow.remote.connection import Connection

LAST_JOBS, FETCHED = 100, 10  # of your own, that a release is looked for among; releases that are fetched for that


def seen_rows(dataset: str) -> str:
    """What is told of such a score, before it is charged."""
    return (
        f"this forest was trained on the rows of {one_line(dataset)!r} themselves, which flatter it. The score is charged all the same; "
        "for a fair one take a dataset with other rows, if the service has one."
    )


def is_of(part: Part, public: Dataset) -> bool:
    """Whether a table of a release is this dataset, as far as the release says: by its name, or by the key of the service that made it."""
    made_there = public.signed_with is not None and part.source == source_at(public.signed_with, public.name)
    return made_there or part.key == (public.owner, public.name)


def counted_together(part: Part, public: Dataset) -> bool:
    """Whether it is of several owners, of whom the service is one: perhaps of another dataset of it."""
    return isinstance(part.together, Together) and public.together_name in part.owners


def trained_on(connection: Connection, dataset: str, release: Release) -> bool:
    """As far as can be told for free: by what the release says of its tables, or among your own jobs. What cannot be told is no error."""
    parts, source = release.certificate.parts, source_of(connection.url, dataset)
    if release.origin == source or any(part.source == source for part in parts):
        return True
    try:
        public = connection.dataset(dataset)
        if any(is_of(part, public) for part in parts):
            return True
        if public.signed_with is not None and public.signed_with not in [signature.key for signature in release.signatures]:
            return False
        epsilon, delta = Fraction(release.certificate.epsilon or 0), Fraction(release.certificate.delta or 0)
        jobs = [job for job in islice(connection.jobs(dataset), LAST_JOBS) if job.result.startswith("/v1/releases/")]
        alike = [job for job in jobs if job.cost.delta == delta and job.cost.epsilon <= epsilon]
        return any(connection.release(job.id).content_hash == release.content_hash for job in alike[:FETCHED])
    except HedgerowError:
        return False
