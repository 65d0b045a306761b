"""What owners compare before anything is charged: the plan, its schema and ε, who they are, t, who is there. All of it is public."""

from __future__ import annotations

import hashlib

import msgspec

from hedgerow import __version__
from hedgerow.accounting.loss import text_of_fraction
from hedgerow.errors import TogetherError
from hedgerow.mechanisms.coins import SYSTEM, random_name
from hedgerow.multiparty.meeting import Meeting
from hedgerow.multiparty.secure_sum import ShamirSum
from hedgerow.release.parts import Together
from hedgerow.release.public_plan import PublicPlan
from hedgerow.schema.toml import to_plain
from hedgerow.training.counting import Agreement

MOST_BYTES = 2**16


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One party's terms. All but the last four fields must be the same for all.

    request: which request of an analyst it is, where services count together; "" elsewhere
    assumed: what the party's engine assumes of its rows, for the certificate      fresh: new random bits, for the name of the run
    """

    hedgerow: str
    schema: str
    epsilon: str
    plan: str
    owners: int
    tolerated: int
    parties: str
    request: str
    present: list[int]
    number: int
    disjoint: bool
    assumed: str
    fresh: str


WORDS = {  # in the order in which they are compared: of several differences the first is told
    "hedgerow": "another version of hedgerow",
    "schema": "a plan with another schema",
    "epsilon": "a plan with another ε",
    "plan": "another plan",
    "owners": "another number of owners",
    "tolerated": "another number of owners who may be absent or tell",
    "parties": "another parties' file: other names or certificates",
    "request": "another request of an analyst",
    "present": "others present: some can reach owners whom some cannot",
}


def agree(meeting: Meeting, plan: PublicPlan, disjoint: bool, assumed: str, request: str = "") -> Agreement:
    """Compare terms with all who are here, then that all have compared the same. Nothing is spent, no row is read."""
    secure_sum = ShamirSum(meeting, meeting.parties.shares)
    own = _own_terms(meeting, plan, disjoint, assumed, request)
    raw = msgspec.json.encode(own)
    sent = {meeting.number: raw, **meeting.exchange(raw, MOST_BYTES, "comparing terms")}
    terms = {number: own if number == meeting.number else _read(meeting, number, sent[number]) for number in sorted(sent)}
    for number, theirs in terms.items():
        _compare(meeting, own, number, theirs)
    transcript = hashlib.sha256(b"\n".join(sent[number] for number in sorted(sent))).digest()
    if set(meeting.exchange(transcript, len(transcript), "comparing terms").values()) - {transcript}:
        raise TogetherError("the owners were told different terms. Nothing was spent. Start again with the same files.")
    everybody = [party.name for party in meeting.parties.owners]
    absent = [name for number, name in enumerate(everybody, start=1) if number not in meeting.present]
    return Agreement(
        hashlib.sha256(b"hedgerow together" + transcript).hexdigest()[:32],
        Together(everybody, meeting.parties.tolerated, absent),
        "; ".join(sorted({each.assumed for each in terms.values()} - {""})),
        secure_sum,
    )


def _own_terms(meeting: Meeting, plan: PublicPlan, disjoint: bool, assumed: str, request: str) -> Terms:
    parties = meeting.parties
    return Terms(
        hedgerow=__version__,
        schema=hashlib.sha256(msgspec.json.encode(to_plain(plan.schema))).hexdigest(),
        epsilon=text_of_fraction(plan.epsilon),
        plan=plan.content_hash,
        owners=len(parties.owners),
        tolerated=parties.tolerated,
        parties=parties.digest,
        request=request,
        present=meeting.present,
        number=meeting.number,
        disjoint=disjoint,
        assumed=assumed,
        fresh=random_name(SYSTEM),
    )


def _read(meeting: Meeting, number: int, data: bytes) -> Terms:
    try:
        return msgspec.json.decode(data, type=Terms)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise TogetherError(
            f"{meeting.parties.words(number)} sent no terms that can be read. Nothing was spent. Do all have the same version?"
        ) from error


def _compare(meeting: Meeting, own: Terms, number: int, theirs: Terms) -> None:
    who = meeting.parties.words(number)
    for field, words in WORDS.items():
        if getattr(own, field) != getattr(theirs, field):
            raise TogetherError(f"{who} has {words} than party {own.number}. Nothing was spent, no row was read. Agree on the same files.")
    if not theirs.disjoint:
        raise TogetherError(
            f"{who} does not state that its persons have rows in no other owner's table, so that one person might be counted by several. "
            "Nothing was spent. Each owner adds --disjoint (disjoint=True), if it is so."
        )
    if theirs.number != number or len(theirs.assumed) > 1000 or not theirs.assumed.isprintable() or len(theirs.fresh) != 32:
        raise TogetherError(f"{who} sent terms that are not its own or cannot be used. Nothing was spent.")
