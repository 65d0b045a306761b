"""A federation: counts in one plan requested from several curators at once. Releases are kept as they come; missing ones can be
requested again. Or the curators count together: then there is one release, the same from each.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hedgerow import formatting
from hedgerow.errors import BudgetError, CuratorError, HedgerowError, ReleaseError
from hedgerow.release.merging import merge
from hedgerow.release.parts import Together
from hedgerow.release.public_plan import PublicPlan
from hedgerow.release.release import Release
from hedgerow.release.signing import fingerprint
from hedgerow.remote.connection import Connection, connect, the_only_purpose
from hedgerow.remote.federation_folder import Folder
from hedgerow.remote.jobs import FIRST_PAUSE, LONGEST_PAUSE, SLOWER, Job
from hedgerow.remote.places import Place
from hedgerow.remote.request_file import BUSY, refused
from hedgerow.remote.responses import Dataset
from hedgerow.remote.transport import path_segment
from hedgerow.schema.toml import same_columns

CHECKING, REQUESTED, RUNNING, ANSWERED, FAILED = "checking", "requested", "running", "answered", "failed"
CHECK_SECONDS = 30.0
NOT_PAID = (
    "it was not asked to count, as another cannot take part. Nothing was spent. To do without the other, leave its address out, or "
    "--at-least."
)
NOT_ASKED = "it was not asked to count: too few of the others are ready. Nothing was spent."
LATE = "it did not answer in time. If it has the request, it goes on with it, and the next run fetches its answer."


@dataclass(frozen=True)
class CuratorStatus:
    """The status of one curator.

    words: why it failed; unsure: it may go on with the request all the same; owner: whose rows its release says that it holds; before:
    kept by an earlier run
    """

    place: Place
    state: str
    words: str = ""
    owner: str = ""
    share: float = 0.0
    before: bool = False
    unsure: bool = False


StatusCallback = Callable[[CuratorStatus], None]


class Federation:
    """One plan, its curators, and the folder in which their answers are kept.

    trusted:  public keys one of which must have signed each answer; None: any will do
    together: how many curators must be ready, if they are to count together; None: each counts by itself
    needed:   how many must answer, or nothing is merged: where fewer can, none is charged; None: all

    After `collect`, `asked` has those to which this run has sent the request.
    """

    def __init__(
        self, plan: PublicPlan, tokens: Mapping[Place, str], folder: Folder, on_status: StatusCallback, timeout: float,
        trusted: Collection[str] | None = None, together: int | None = None, needed: int | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.tokens, self.folder, self.on_status, self.timeout = plan, tokens, folder, on_status, timeout
        self.trusted, self.together, self.needed = trusted, together, needed or len(tokens)
        self.asked: list[Place] = []
        self._groups: dict[Place, str | None] = {}  # with whom each says that it counts together

    def collect(self) -> list[CuratorStatus]:
        """Send the request to those that have not answered, all at once, and wait for their answers at most `timeout` seconds."""
        status: dict[Place, CuratorStatus] = {}
        for place in self.tokens:
            release = self.folder.kept(place)
            if release is not None and not differences(release, self.plan, self.together is not None):
                status[place] = CuratorStatus(place, ANSWERED, owner=_owner(release), before=True)
                self.on_status(status[place])
        if self.together is not None and status:  # the release of all is there
            return list(status.values())
        missing = [place for place in self.tokens if place not in status]
        checked = self._at_once(self._check, missing, time.monotonic() + min(CHECK_SECONDS, self.timeout))
        status |= self._named_apart(checked, status) if self.together is None else self._of_one_group(checked)
        self.folder.write()  # with their purposes, before anything is paid
        ready = [place for place in missing if status[place].state == REQUESTED]
        if self.together is not None and len(ready) < self.together:
            return [replace(status[place], state=FAILED, words=status[place].words or NOT_ASKED) for place in self.tokens]
        if self.together is None and sum(each.state != FAILED for each in status.values()) < self.needed:
            held = [place for place in ready if not self.folder.request(place).sent]  # of the others the answer may be stored, and free
            status |= {place: replace(status[place], state=FAILED, words=NOT_PAID) for place in held}
            ready = [place for place in ready if place not in held]
        self.asked = ready
        status |= self._at_once(self._count, ready, time.monotonic() + self.timeout)
        if self.together is not None and all(status[place].state == FAILED and not status[place].unsure for place in ready):
            self.folder.begin_anew()  # nobody has an answer, nor ever will: the next run is another, paid for by itself
        return [status[place] for place in self.tokens]

    def _of_one_group(self, checked: Mapping[Place, CuratorStatus]) -> dict[Place, CuratorStatus]:
        """Those that are ready count with the same owners, or none of them begins."""
        groups = {self._groups.get(place) for place, status in checked.items() if status.state != FAILED}
        if len(groups) < 2:
            return dict(checked)
        words = "it counts together with other owners than another of these services: their parties' files differ. Nothing was spent."
        return {place: replace(status, state=FAILED, words=status.words or words) for place, status in checked.items()}

    def _at_once(self, work: Callable[[Place, float], CuratorStatus], places: Sequence[Place], ends: float) -> dict[Place, CuratorStatus]:
        """Threads that nobody waits for longer than that: a request that hangs must not hold up the others."""
        done: queue.SimpleQueue[CuratorStatus] = queue.SimpleQueue()
        for place in places:
            threading.Thread(target=lambda place=place: done.put(_status_of(work, place, ends)), daemon=True).start()
        found = {place: CuratorStatus(place, FAILED, LATE, unsure=True) for place in places}
        for _ in places:
            try:
                status = done.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                break
            found[status.place] = status
            self.on_status(status)
        return found

    def _check(self, place: Place, ends: float) -> CuratorStatus:
        """What can be seen before anything is paid: that it is there, for which purpose, with the schema of the plan."""
        self.on_status(CuratorStatus(place, CHECKING))
        with self._connection(place, ends) as connection:
            dataset = connection.dataset(place.dataset)
        request = self.folder.request(place)
        _check_schema(dataset, self.plan)
        if dataset.closed and not request.sent:
            raise CuratorError("The dataset is closed. Nothing was spent. Leave its address out.")
        if self.together is not None and dataset.together is None:
            raise CuratorError("it counts together with nobody. Nothing was spent. Its owner starts it with `hedgerow serve --party`.")
        if self.together is not None and len(self.tokens) < dataset.together_least:
            raise CuratorError(
                f"it counts together with other owners, of whom {dataset.together_least} must come, and {len(self.tokens)} addresses were "
                "given. Nothing was spent. Give the addresses of all."
            )
        self._groups[place] = dataset.together
        if self.trusted is not None and dataset.signed_with not in self.trusted:
            signs = (
                "signs nothing" if dataset.signed_with is None else f"signs with {fingerprint(dataset.signed_with)}, which is not trusted"
            )
            raise CuratorError(f"it {signs}. Nothing was spent. Get the service's public key from its owner: --trust.")
        purpose = request.purpose or the_only_purpose(dataset)
        left = None if request.sent else dataset.purposes.get(purpose)  # of a request that was sent the answer may be stored, and free
        if left is not None and (left.epsilon < self.plan.epsilon or left.delta < self.plan.delta):
            raise BudgetError(
                f"it has {formatting.loss(left.epsilon, left.delta if self.plan.delta else Fraction(0))} left for {purpose!r}, "
                f"and the plan costs {formatting.loss(self.plan.epsilon, self.plan.delta)}. Nothing was spent. Ask its owner for more, "
                "or agree on another plan."
            )
        request.purpose = purpose
        return CuratorStatus(place, REQUESTED, owner=dataset.owner)

    def _named_apart(self, checked: Mapping[Place, CuratorStatus], answered: Mapping[Place, CuratorStatus]) -> dict[Place, CuratorStatus]:
        """Of two curators with one name the releases could not be merged, so they are not paid for."""
        named: dict[str, list[Place]] = {}
        for place, status in {**answered, **checked}.items():
            if status.state != FAILED:
                named.setdefault(status.owner, []).append(place)
        found = dict(checked)
        for place, status in checked.items():
            others = [other.url for other in named.get(status.owner, ()) if other != place]
            if others and status.state != FAILED:
                words = (
                    f"it calls its owner {status.owner!r}, and so does {others[0]}: counts of one owner are not added twice. If they "
                    "are two owners, let one start its service with a name of its own: `hedgerow serve --name`. Nothing was spent."
                )
                found[place] = replace(status, state=FAILED, words=words)
        return found

    def _count(self, place: Place, ends: float) -> CuratorStatus:
        before = self.folder.request(place).sent
        request = self.folder.sending(place)
        with self._connection(place, ends) as connection:
            try:
                job = self._paid(connection, place, request.purpose, request.key, ends)
            except HedgerowError as error:
                if not before and refused(error):
                    self.folder.not_taken(place)
                raise
            self.on_status(CuratorStatus(place, RUNNING))
            try:
                job.done(lambda share: self.on_status(CuratorStatus(place, RUNNING, share=share)), max(0.0, ends - time.monotonic()))
            except CuratorError as error:
                if error.code == "failed" and self.together is None:
                    self.folder.request_anew(place)  # it has no answer, and never will: the next run pays for another
                if error.code != "failed":  # it has the job, whatever came between
                    raise CuratorError(str(error), 0, error.code) from None
                raise
            content = connection.transport.bytes("GET", f"/v1/releases/{path_segment(job.id)}")
        release = Release.from_json(content, "its release")
        wrong = differences(release, self.plan, self.together is not None)
        if wrong:
            raise ReleaseError(f"its release is not an answer to the plan: {wrong} It was not kept. Ask its owner what went wrong.")
        self.folder.keep(place, content)
        return CuratorStatus(place, ANSWERED, owner=_owner(release), share=1.0)

    def _paid(self, connection: Connection, place: Place, purpose: str, key: str, ends: float) -> Job:
        """The job. A busy service gets the request again, with the same key."""
        pause = FIRST_PAUSE
        while True:
            try:
                together = self.folder.state.together or None
                return connection.counts(place.dataset, self.plan, epsilon=self.plan.epsilon, purpose=purpose, key=key, together=together)
            except CuratorError as error:
                if error.code == "key_used":
                    raise CuratorError(
                        "it had this request before for another purpose, and has answered that. Give the --purpose of then, or take "
                        "another folder to pay for another answer: --folder."
                    ) from None
                if error.code not in BUSY or time.monotonic() + pause > ends:
                    raise
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * SLOWER)

    def _connection(self, place: Place, ends: float) -> Connection:
        return connect(place.service, self.tokens[place], timeout=min(60.0, max(0.1, ends - time.monotonic())))

    def merged(self, answered: Iterable[CuratorStatus], disjoint: bool) -> Release:
        """One forest from the releases that are kept; of those who counted together the one that all have sent. Costs nothing."""
        places = [status.place for status in answered]
        if self.trusted is not None:
            for place in places:
                keys = {signature.key for signature in Release.load(self.folder.file(place)).signatures}
                if not keys & set(self.trusted):
                    raise CuratorError(f"{place.url}: its answer is not signed with a trusted key; nothing was merged. Ask its owner.")
        if self.together is not None:
            first, *others = (Release.load(self.folder.file(place)) for place in places)
            try:
                return first.with_signatures_of(others)
            except ReleaseError:
                raise CuratorError(
                    f"the services have sent different releases, so that one of them does not follow the protocol; nothing was saved. "
                    f"They are kept in {self.folder.path}: show them to the owners."
                ) from None
        kept = (Release.load(self.folder.file(place)) for place in places)
        one_key = len({place.service for place in places}) < len(places)  # datasets of one service, each under a name of its own
        return merge(kept, disjoint=disjoint, batches=one_key, names=[place.url for place in places])


def _status_of(work: Callable[[Place, float], CuratorStatus], place: Place, ends: float) -> CuratorStatus:
    try:
        return work(place, ends)
    except HedgerowError as error:
        unsure = isinstance(error, CuratorError) and not error.status and error.code != "failed"
        return CuratorStatus(place, FAILED, str(error).removeprefix(f"{place.service}: "), unsure=unsure)
    except Exception as error:  # whatever a strange answer brings about: the others go on
        return CuratorStatus(place, FAILED, f"its answer cannot be used ({type(error).__name__}).", unsure=True)


def _check_schema(dataset: Dataset, plan: PublicPlan) -> None:
    if not same_columns(dataset.schema, plan.schema):
        raise CuratorError("its schema is not that of the plan: other columns, values or bounds. Agree on one schema, then plan.")


def _owner(release: Release) -> str:
    part = release.certificate.parts[0]
    return part.owner or " + ".join(part.owners)


def differences(release: Release, plan: PublicPlan, together: bool = False) -> str:
    """What keeps a release from being one table's counts in the trees of a plan, at its ε; "" if nothing does.

    together: the tables of owners who counted together, as one
    """
    parts, same = release.certificate.parts, ("algorithm", "vote", "parameters", "chosen")
    if release.codebook != plan.codebook:
        return "it has another schema, or other bins."
    if release.forest.trees != plan.trees or any(getattr(release, name) != getattr(plan, name) for name in same):
        return "it has other trees or settings."
    if not release.certificate.private or len(parts) != 1 or not parts[0].counted or release.correction.trees:
        return "it does not claim ε for the counts of one table."
    if isinstance(parts[0].together, Together) != together:
        return "it is of one owner." if together else "it is of owners who counted together."
    if Fraction(parts[0].epsilon) != plan.epsilon or parts[0].exact_delta != plan.delta:
        return f"it was counted at {release.certificate.loss}, and the plan says {formatting.loss(plan.epsilon, plan.delta)}."
    return ""
