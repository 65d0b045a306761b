"""A table that was counted, as a certificate records it: its events, its loss, its owner, and what was assumed about its rows."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from hedgerow import formatting
from hedgerow.accounting.events import LOCAL_SENSITIVITY, Event
from hedgerow.accounting.known_shares import epsilon_without_one
from hedgerow.accounting.loss import exact_sum, text_of_fraction
from hedgerow.accounting.noise import Gaussian, Noise, Shares, made_noise
from hedgerow.accounting.shared_gaussian import gaussian_epsilon_without_one
from hedgerow.accounting.zcdp import rho_for, rho_of_event
from hedgerow.errors import PlanError

NEIGHBOURS = "add or remove one row"
UNIT = "one row"
NEIGHBOURS_OF_PARTS = "add or remove one person, with at most one row in each counted table"
UNIT_OF_PARTS = "one person"
NEARLY_ONE_DRAW = (
    "Gaussian noise came in shares, whose sum is proven to be within a billionth of one draw, in the logarithm of every probability; the "
    "ε and the δ include that (PROOF.md, M6)"
)
ONE_ROW_EACH = "each person has at most one row in the table"
UNREVIEWED = "domains were read from private data"
NOT_PROVEN = "splits were chosen with local sensitivity, for which the stated ε is not proven"
TEST_COINS = "noise came from seeded test coins that anyone can replay"
MAX_NAME = 200  # characters
MAX_OWNERS = 100  # who count together
EPSILON_DP, EPSILON_DELTA_DP = "epsilon-DP", "epsilon-delta-DP"
SAME_TABLE = (
    "batch: this dataset of the service is in the forest already, as {}. The same rows cannot be counted twice; nothing was spent. If it "
    "has other rows by now, and only those, state it: --other-rows (other_rows=True)."
)
COUNTING = 1  # how a row is read and counted: parts that were counted in different ways cannot be added


EVENTS_NOTE = (
    "sensitivity: how far one row can move the numbers (squared, with Gaussian noise); noise scale: sensitivity / ε of Laplace noise and "
    "choices, the variance σ² of Gaussian noise"
)
RHO_NOTE = "; ρ: the cost of one query with Gaussian noise. All ρ are added up (an ε counts as ε²/2 at most), which gives the (ε, δ) above"


class EventRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A charged event; see `accounting/events.py` for the meaning of each field."""

    query: str = msgspec.field(name="verb")
    mechanism: str
    epsilon: str
    queries: int
    sensitivity: str
    scale: str
    rho: str | msgspec.UnsetType = msgspec.UNSET  # of Gaussian noise alone: elsewhere the file has no such field

    @property
    def verb(self) -> str:
        """The name of `query` in version 0.1, and in files."""
        warnings.warn("verb: use `query`.", DeprecationWarning, stacklevel=2)
        return self.query

    @property
    def shown_sensitivity(self) -> str:
        """For people. Of choices with local sensitivity each node has its own, and the event states the largest."""
        local = self.mechanism == LOCAL_SENSITIVITY
        return f"{formatting.number(float(Fraction(self.sensitivity)), 3 if local else formatting.DIGITS)}{' at most' if local else ''}"

    @property
    def shown(self) -> tuple[str, str, str]:
        """ε ("–" where it is paid in ρ), ρ and the scale of the noise, for people; the fields have them exactly."""
        rho = formatting.rough(Fraction(self.rho)) if isinstance(self.rho, str) else "–"
        return (
            "–" if self.epsilon == "0" else formatting.rough(Fraction(self.epsilon)),
            rho,
            formatting.number(float(Fraction(self.scale))),
        )

    @property
    def noise(self) -> Noise:
        """The noise on each number that it answered."""
        return made_noise(self.mechanism, Fraction(self.scale))

    @property
    def zcdp_cost(self) -> Fraction:
        """Its loss in concentrated privacy."""
        rho = Fraction(0) if isinstance(self.rho, msgspec.UnsetType) else Fraction(self.rho)
        return rho_of_event(self.mechanism, Fraction(self.epsilon), rho)

    @property
    def as_charged(self) -> Event:
        """The event itself, as a budget is charged for it."""
        rho = Fraction(0) if isinstance(self.rho, msgspec.UnsetType) else Fraction(self.rho)
        fractions = Fraction(self.sensitivity), Fraction(self.scale)
        return Event(self.query, self.mechanism, Fraction(self.epsilon), self.queries, *fractions, rho)

    @classmethod
    def of(cls, event: Event) -> EventRecord:
        return cls(
            event.query,
            event.mechanism,
            text_of_fraction(event.epsilon),
            event.queries,
            text_of_fraction(event.sensitivity),
            text_of_fraction(event.scale),
            text_of_fraction(event.rho) if event.rho else msgspec.UNSET,
        )


class Together(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Owners who counted their tables together, with the noise of one (PROOF.md, M4).

    owners:    all who were to take part, in their order
    tolerated: how many of them may be absent or tell the others what they added, so that the ε still holds. With 0 none may even know its
               own share, which every owner declares
    absent:    those who were absent: their rows are not counted
    beyond:    the ε against one more who knows its share than these, rounded up (PROOF.md, M5)
    """

    owners: list[str]
    tolerated: int
    absent: list[str] = []
    beyond: str | msgspec.UnsetType = msgspec.UNSET  # the first releases have no such field

    def noise(self, draw: Noise) -> Noise:
        """That of all who were present, where shares are parts of that draw: more than one, as none is left out of those who look."""
        added, whole = len(self.present), len(self.owners) - self.tolerated
        if isinstance(draw, Gaussian):
            return Gaussian(draw.sigma_squared * added / whole)  # nearly: M6
        assert isinstance(draw, Fraction)
        return Shares(draw, added, whole)

    def stating(self, events: Iterable[Event | EventRecord], delta: Fraction = Fraction(0)) -> Together:
        """The same with the ε against one more who knows its share, from what was charged; where no noise would be left there is none."""
        if len(self.owners) - self.tolerated < 2:
            return self
        return msgspec.structs.replace(self, beyond=text_of_fraction(epsilon_beyond(events, delta, len(self.owners) - self.tolerated)))

    @property
    def present(self) -> list[str]:
        return [name for name in self.owners if name not in self.absent]

    @property
    def sound(self) -> bool:
        """Whether so many are there that what is proven applies."""
        k, t = len(self.owners), self.tolerated
        enough = 3 <= k <= MAX_OWNERS and 0 <= 2 * t < k and len(self.absent) < max(t, 1) and (t > 0 or isinstance(self.beyond, str))
        return enough and len(set(self.owners)) == k and self.absent == [name for name in self.owners if name in self.absent]

    @property
    def assumption(self) -> str:
        """What the ε rests on besides the noise, in words that belong to the file format."""
        k, t, absent = len(self.owners), self.tolerated, len(self.absent)
        away = f", absent: {', '.join(self.absent)}" if absent else ""
        use = "uses its share" if t - absent == 1 else "put together their shares"
        most = f"at most {t - absent} {use}" if t else "none uses its own share"
        return (
            f"{k} owners counted together ({', '.join(self.owners)}{away}), each with a share of the noise, of which {k - t} are a whole "
            f"draw: all of them follow the protocol of the secure sum, and of those present {most} against the others ({t} tolerated, "
            f"{absent} absent){f'; {self.words_beyond}' if self.words_beyond else ''}"
        )

    @property
    def words_beyond(self) -> str:
        """The ε that is left where what is assumed does not hold by one owner; "" where the file does not say it."""
        if isinstance(self.beyond, msgspec.UnsetType):
            return ""
        more = self.tolerated - len(self.absent) + 1
        who = "an owner who knows its own share of the noise" if more == 1 else f"{more} owners who put together their shares of the noise"
        return f"against {who} it is ε = {self.beyond}"


def epsilon_beyond(events: Iterable[Event | EventRecord], delta: Fraction, whole: int) -> Fraction:
    """The ε, at that δ, of counts in which one share of the noise is known too many, rounded up.  [M5] [M6]"""
    if delta:
        return gaussian_epsilon_without_one(exact_sum(Fraction(each.rho or 0) for each in events), delta, whole)
    left = (epsilon_without_one(Fraction(each.epsilon), each.queries * Fraction(each.sensitivity), whole) for each in events)
    return exact_sum(left)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table that was counted: an owner's, or a batch of rows that came later.

    id:          random, or declared by the owner; never made from the rows. With `owner` it names the table
    owner:       a declared name, "" if none was given
    epsilon:     what its rows are charged at most
    events:      every charged look at its rows; their ε add up to `epsilon`, or to less where a run ended early. With `delta`, their
                 losses in concentrated privacy add up to at most what (ε, δ) is worth
    sampler:     what drew the noise
    assumptions: what its owner states and nobody checked
    problem:     why no ε can be claimed for it; "" where nothing is wrong
    disjoint:    its owner states that a person with rows in this table has none in another table of the plan or forest, and that which
                 table a row is in depends on that row alone
    group:       the same is stated by whoever merged, of all tables with the same group; "" where nobody did
    counted:     False for a table whose own counts are not in the release: it stands behind the trees, by what shaped them (a noisy n̂, a
                 tuning) and by its counts, which whoever took these trees may have looked at
    released:    other numbers that were paid for (the noisy n̂)
    ensemble:    which ensemble of the forest it was counted in; more than one only after a merge of columns
    signed_by:   the public keys that whoever merged saw hold on its file: a record, not a proof
    rows_per_person: of a table with a column of persons, how many rows of each were counted at most. Sensitivities are so many times
                 those of one row, and `epsilon` is what a person pays
    chosen_beforehand: of a table that is not counted here, whoever counted in these trees states that taking them did not depend on its
                 counts. Then `events` and `epsilon` are those of the looks before its counts: none, or its number of rows
    together:    of the tables of several owners who counted together, as if they were one table: who they are. Each of them states
                 `disjoint`, and `owner` is ""
    source:      of rows at a service, a hash of the dataset's address, or of its name and the key that signs, so that the same table is
                 known again
    """

    id: str
    owner: str
    epsilon: str
    events: list[EventRecord]
    sampler: str
    assumptions: list[str]
    problem: str = ""
    disjoint: bool = False
    group: str = ""
    counted: bool = True
    released: dict[str, int] = {}
    ensemble: int = 0
    signed_by: list[str] = []
    made_by: str = ""
    counting: int = COUNTING
    delta: str | msgspec.UnsetType = msgspec.UNSET  # where it is 0 the file has no such field
    rows_per_person: int | msgspec.UnsetType = msgspec.UNSET  # where the schema names no column of persons the file has no such field
    chosen_beforehand: bool | msgspec.UnsetType = msgspec.UNSET  # True where it is stated; elsewhere the file has no such field
    together: Together | msgspec.UnsetType = msgspec.UNSET  # of one owner's table the file has no such field
    source: str | msgspec.UnsetType = msgspec.UNSET  # of rows that were not at a service the file has no such field

    def noise(self, event: EventRecord) -> Noise:
        """The noise on each number that one of its events answered."""
        if isinstance(self.together, Together):
            return self.together.noise(event.noise)
        return event.noise

    @property
    def owners(self) -> list[str]:
        """Whose rows were counted, as far as names are declared."""
        return self.together.present if isinstance(self.together, Together) else [self.owner] if self.owner else []

    @property
    def of_persons(self) -> bool:
        """Whether a column told whose row each is, so that its rows were limited and its ε is that of a person."""
        return not isinstance(self.rows_per_person, msgspec.UnsetType)

    @property
    def k(self) -> int:
        """How many rows of one person were counted at most; where no column tells persons apart, one is assumed."""
        return 1 if isinstance(self.rows_per_person, msgspec.UnsetType) else self.rows_per_person

    @property
    def exact_delta(self) -> Fraction:
        """δ as a number, 0 where there is none."""
        return Fraction(0) if isinstance(self.delta, msgspec.UnsetType) else Fraction(self.delta)

    @property
    def worth(self) -> Fraction:
        """What its (ε, δ) is worth in concentrated privacy: what its events may cost; 0 where δ is 0."""
        return rho_for(Fraction(self.epsilon), self.exact_delta) if self.exact_delta else Fraction(0)

    @property
    def all_pure(self) -> bool:
        """Whether its events have pure losses that add up to at most its ε."""
        pure = all(isinstance(event.rho, msgspec.UnsetType) for event in self.events)
        return pure and exact_sum(Fraction(event.epsilon) for event in self.events) <= Fraction(self.epsilon)

    @property
    def zcdp_cost(self) -> Fraction:
        """The losses of its events in concentrated privacy together."""
        return exact_sum(event.zcdp_cost for event in self.events)

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{' + '.join(self.owners)} ({self.id})" if self.owners else self.id

    @property
    def statement(self) -> str:
        """What is said about persons who might be in another table, too."""
        if not self.counted:
            before = "; stated: they were taken without regard to its counts" if self.stated_beforehand else ""
            return f"shaped the trees only{'; without its counts, which nobody stated' if self.before_counts else before}"
        said = [who for who, says in (("by its owner", self.disjoint), ("by whoever added them up", bool(self.group))) if says]
        return f"stated {' and '.join(said)}" if said else "not stated"

    @property
    def stated_beforehand(self) -> bool:
        """Whether it is stated that these trees were taken without regard to its counts."""
        return self.chosen_beforehand is True

    @property
    def before_counts(self) -> bool:
        """Whether its counts are left out without anybody's word, as in the first releases. (Of one that was tuned it cannot be told.)"""
        return not self.counted and not self.stated_beforehand and all(event.query != "leaf_counts" for event in self.events)

    @property
    def key(self) -> tuple[str, str]:
        return (self.owner, self.id)

    @property
    def spent(self) -> Fraction:
        """The ε that its events add up to; with δ the whole, since what was not used cannot be given back (PROOF.md, Z1)."""
        if self.exact_delta:
            return Fraction(self.epsilon)
        return exact_sum(Fraction(event.epsilon) for event in self.events)


def source_at(key: str, dataset: str) -> str:
    """Of a dataset at the service that signs with this key."""
    return hashlib.sha256(f"{key}/datasets/{dataset}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class TableName:
    """How a certificate names a counted table. Where no batch is declared its name is random: never one made from its rows.

    other_rows: you state that a table at a service has other rows by now than when it was counted before
    """

    batch: str | None = None
    owner: str = ""
    disjoint: bool = False
    other_rows: bool = False

    def __post_init__(self) -> None:
        for what, text, none in (("batch", self.batch, None), ("owner", self.owner, "")):
            if isinstance(text, type(none)) and text == none:
                continue
            if not isinstance(text, str) or not 0 < len(text) <= MAX_NAME or not text.isprintable() or not text.strip():
                raise PlanError(f"{what}: expected a name of 1 to {MAX_NAME} printable characters, got {str(text)[:40]!r}.")
        if not isinstance(self.disjoint, bool):
            raise PlanError(f"disjoint: got {self.disjoint!r}; expected True (you state it) or False.")

    def check_new(self, parts: Iterable[Part]) -> None:
        """Refuse a batch that is counted already, before anything is spent on it."""
        if self.batch is not None and any(part.key == (self.owner, self.batch) for part in parts):
            raise PlanError(
                f"batch: {self.batch!r}{f' of {self.owner!r}' if self.owner else ''} is in the forest already. The same rows cannot be "
                "counted twice; give a new batch a name of its own, or none."
            )

    def check_other_table(self, parts: Iterable[Part], counted_as: Callable[[Part], bool]) -> None:
        """The same for a table at a service, whatever its batch is called. counted_as: whether the rows are known to be a part's"""
        before = None if self.other_rows else next((part for part in parts if counted_as(part)), None)
        if before is not None:
            raise PlanError(SAME_TABLE.format(before.name))
