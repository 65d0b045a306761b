"""Jobs at a service: their cost and status, and waiting for their results."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hedgerow.errors import CuratorError, SchemaMismatchWarning
from hedgerow.release.release import Release
from hedgerow.remote.responses import Loss, RemoteScore, parsed_response
from hedgerow.remote.transport import Transport, one_line, path_segment

FIRST_PAUSE, LONGEST_PAUSE, SLOWER = 0.05, 2.0, 1.5  # seconds, and by what each pause is longer than the one before
ENDED = ("done", "failed")


@dataclass(frozen=True)
class Job:
    """A job, paid for when it was submitted. key: send the request again with it after a crash, and the same answer comes, paid once.

    state: waiting, running, done or failed; share: of the pass over the rows that it is in; result: where the answer is, when it is done
    """

    id: str
    key: str
    dataset: str
    purpose: str
    what: str
    cost: Loss
    state: str
    share: float
    result: str
    _transport: Transport = field(repr=False, compare=False)

    @classmethod
    def read(cls, transport: Transport, found: Any, key: str = "") -> Job:
        with parsed_response(transport.url):
            texts = {name: str(found[name]) for name in ("id", "dataset", "purpose", "what", "state")}
            share, result = float(found.get("share", 0.0)), str(found.get("result", ""))
            return cls(**texts, key=key, cost=Loss.read(found["cost"]), share=share, result=result, _transport=transport)

    def now(self) -> Job:
        """Its present status."""
        return Job.read(self._transport, self._transport.json("GET", f"/v1/jobs/{path_segment(self.id)}"), self.key)

    def wait(self, progress: Callable[[float], None] | None = None, timeout: float | None = None) -> Release | RemoteScore:
        """What comes of it, when it is there. progress: called with the share of the pass; timeout: seconds after which it is given up."""
        return self.done(progress, timeout).answer()

    def done(self, progress: Callable[[float], None] | None = None, timeout: float | None = None) -> Job:
        """The job, when it has ended well."""
        job, pause = self, FIRST_PAUSE
        ends = None if timeout is None else time.monotonic() + timeout
        while job.state not in ENDED:
            left = pause if ends is None else ends - time.monotonic()
            if left <= 0:
                text = f"the job {one_line(self.id)} has not ended in time. It goes on; wait for it again."
                raise CuratorError(f"{self._transport.url}: {text}")
            time.sleep(min(pause, left))
            pause = min(LONGEST_PAUSE, pause * SLOWER)
            job = job.now()
            if progress is not None:
                progress(job.share)
        if job.state == "failed":
            raise job._failed()
        return job

    def _failed(self) -> CuratorError:
        """What was given back, as when the service stops before it begins, has cost nothing."""
        name, charged = f"{self._transport.url}: the job {one_line(self.id)}", bool(self.cost.epsilon or self.cost.delta)
        if not charged:
            text = f"{name} failed: no row was looked at, and nothing was charged. Its owner can see why; it may be requested again."
        else:
            text = (
                f"{name} could not be ended; its owner can see why. It has cost {self.cost}. "
                "Requested again with a new key, it is paid for again."
            )
        return CuratorError(text, code="failed", charged=charged)

    def answer(self) -> Release | RemoteScore:
        """Of a job that is done."""
        if self.result.startswith("/v1/scores/"):
            with parsed_response(self._transport.url):
                score = RemoteScore.read(self._transport.json("GET", f"/v1/scores/{path_segment(self.id)}"))
                wrong = score.mismatch
            if wrong is not None:
                warnings.warn(f"{wrong}.", SchemaMismatchWarning, stacklevel=3)
            return score
        return release_of(self._transport, self.id)


def release_of(transport: Transport, id: str) -> Release:
    return Release.from_json(transport.bytes("GET", f"/v1/releases/{path_segment(id)}"), transport.url)
