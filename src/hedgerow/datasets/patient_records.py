"""Synthetic patient records of any size: a public stand-in for the tables that private learning is meant for.

Two hidden risks, cardiac and metabolic, drive both the attributes and the diagnosis. No record describes a
person, and the randomness here protects nobody: it is seeded so that everyone gets the same rows.

Rows are made in blocks of `BLOCK`, each with its own child of the seed, so that the first n rows are the same
however many are asked for and in whatever chunks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.datasets.dataset import Dataset
from hedgerow.errors import TableError
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.schema import Schema

BLOCK = 16_384

SCHEMA = Schema(
    attributes=[
        Numeric("age", 18, 95, integer=True),
        Categorical("sex", ("female", "male")),
        Categorical("region", ("north", "east", "south", "west")),
        Categorical("smoker", ("never", "former", "current")),
        Categorical("exercise", ("none", "weekly", "daily")),
        Categorical("alcohol", ("none", "moderate", "heavy")),
        Categorical("family-history", ("no", "yes")),
        Numeric("bmi", 14, 60),
        Numeric("systolic-pressure", 80, 220, integer=True),
        Numeric("heart-rate", 40, 140, integer=True),
        Numeric("cholesterol", 100, 400, integer=True),
        Numeric("glucose", 40, 300, integer=True),
        Categorical("diabetes", ("no", "yes")),
        Categorical("medication", ("none", "diuretic", "statin", "metformin")),
        Numeric("visits", 0, 40, integer=True),
    ],
    target=Target("diagnosis", ("none", "cardiac", "metabolic")),
)
_VALUES = {attribute.name: np.array(attribute.values) for attribute in SCHEMA.attributes if isinstance(attribute, Categorical)}
_COLUMN_TYPE = {name: _VALUES[name].dtype if name in _VALUES else np.dtype(float) for name in SCHEMA.names}
_CLASSES = np.array(SCHEMA.target.classes)


def patients(rows: int = 10_000, seed: int = 0) -> Dataset:
    """`rows` synthetic records; the same first rows for every larger number."""
    _check(rows, "rows", at_least=1)
    return next(patients_chunks(rows, rows, seed))


def patients_chunks(rows: int, chunk: int, seed: int = 0) -> Iterator[Dataset]:
    """The records of `patients(rows, seed)` in pieces of `chunk` rows, holding one piece at a time.

    Any chunk size gives the same rows.
    """
    _check(rows, "rows", at_least=0)
    _check(chunk, "chunk", at_least=1)
    _check(seed, "seed", at_least=0)
    return _pieces(rows, chunk, seed)


def _check(number: object, what: str, at_least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < at_least:
        expected = f"a whole number of at least {at_least}"
        raise TableError(f"patients, {what}: got {number!r}; expected {expected}.")


def _pieces(rows: int, chunk: int, seed: int) -> Iterator[Dataset]:
    held = -1
    block: dict[str, np.ndarray] = {}
    for start in range(0, rows, chunk):
        stop = min(start + chunk, rows)
        columns = {name: np.empty(stop - start, dtype) for name, dtype in _COLUMN_TYPE.items()}
        target = np.empty(stop - start, _CLASSES.dtype)
        for number in range(start // BLOCK, -(-stop // BLOCK)):
            if number != held:  # a chunk smaller than a block goes on with the block it is in
                held, block = number, _block(seed, number)
            first, last = max(start, number * BLOCK), min(stop, (number + 1) * BLOCK)
            here = slice(first - start, last - start)
            there = slice(first - number * BLOCK, last - number * BLOCK)
            for name, column in columns.items():
                part = block[name][there]
                column[here] = _VALUES[name].take(part) if name in _VALUES else part
            target[here] = _CLASSES.take(block["diagnosis"][there])
        note = f"Synthetic patient records, seed {seed}; no real person."
        yield Dataset("patients", columns, target, SCHEMA, note)


def _block(seed: int, number: int) -> dict[str, np.ndarray]:
    """One block: numbers for numeric attributes, positions in the declared values for categorical ones."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))

    def normal() -> np.ndarray:
        return random.standard_normal(BLOCK, dtype=np.float32)

    def choice(*chances: np.ndarray | float) -> np.ndarray:
        """Positions 0, 1, …; the chances, in falling order, are those of reaching one position more."""
        uniform = random.random(BLOCK, dtype=np.float32)
        reached = np.zeros(BLOCK, dtype=np.uint8)
        for chance in chances:
            reached += uniform < chance
        return reached

    metabolic_risk, cardiac_risk = normal(), normal()
    cardiac_risk += np.float32(0.35) * metabolic_risk
    # A sum of uniforms: adults of every age, most of them between 35 and 75.
    uniforms = random.random((2, BLOCK), dtype=np.float32)
    age = 18 + 77 * (0.6 * uniforms[0] + 0.4 * uniforms[1])
    old = (age - 55) / 20

    sex = choice(0.48)
    region = choice(0.75, 0.5, 0.25)
    smoker = choice(0.45 + 0.05 * cardiac_risk, 0.22 + 0.05 * cardiac_risk)
    exercise = choice(0.65 - 0.12 * metabolic_risk, 0.3 - 0.08 * metabolic_risk)
    alcohol = choice(0.6, 0.12)
    family = choice(0.28 + 0.08 * cardiac_risk + 0.06 * metabolic_risk)
    bmi = 28 + 2.8 * metabolic_risk - 1.2 * exercise + 0.8 * old + 2.2 * normal()
    systolic = 122 + 9 * cardiac_risk + 8 * old + 0.5 * (bmi - 27) + 3 * (alcohol == 2) + 8 * normal()
    heart_rate = 74 + 5 * cardiac_risk - 4 * exercise + 3 * (smoker == 2) + 6 * normal()
    cholesterol = 195 + 20 * cardiac_risk + 8 * old + 6 * (smoker == 2) + 20 * normal()
    glucose = 105 + 15 * metabolic_risk + 4 * old + 0.8 * (bmi - 27) + 9 * normal()
    diabetes = choice(0.1 + 0.09 * metabolic_risk + 0.04 * old)

    # Risks add up, and some only count together: smoking in later years, a family history when overweight.
    cardiac = (
        -0.95
        + 0.75 * cardiac_risk
        + 0.55 * old
        + 0.03 * (systolic - 122)
        + 0.012 * (cholesterol - 195)
        + 1.1 * ((smoker == 2) & (age > 50))
        + 0.8 * ((family == 1) & (sex == 1))
    )
    metabolic = (
        -1.15
        + 0.7 * metabolic_risk
        + 0.035 * (glucose - 105)
        + 0.09 * (bmi - 27)
        + 1.2 * diabetes
        + 1.0 * ((family == 1) & (bmi > 30))
        - 0.35 * (exercise == 2)
    )
    medication = _medication(cardiac, metabolic, random.random(BLOCK, dtype=np.float32))
    worry = np.clip(np.maximum(cardiac, metabolic), -1.5, 2.5)
    visits = np.floor((2.2 + 1.2 * worry) * random.standard_exponential(BLOCK, dtype=np.float32))

    # What no attribute tells: it keeps the best possible model away from certainty.
    cardiac += np.float32(0.7) * normal()
    metabolic += np.float32(0.7) * normal()
    diagnosis = np.where(np.maximum(cardiac, metabolic) < 0, 0, np.where(cardiac > metabolic, 1, 2))
    return {
        "age": np.floor(age),
        "sex": sex,
        "region": region,
        "smoker": smoker,
        "exercise": exercise,
        "alcohol": alcohol,
        "family-history": family,
        "bmi": np.clip(np.rint(bmi * 10), 140, 600).astype(np.float64) / 10,
        "systolic-pressure": np.clip(np.rint(systolic), 80, 220),
        "heart-rate": np.clip(np.rint(heart_rate), 40, 140),
        "cholesterol": np.clip(np.rint(cholesterol), 100, 400),
        "glucose": np.clip(np.rint(glucose), 40, 300),
        "diabetes": diabetes,
        "medication": medication,
        "visits": np.minimum(visits, 40),
        "diagnosis": diagnosis,
    }


def _medication(cardiac: np.ndarray, metabolic: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """What was prescribed before the diagnosis: it follows the risks, but is often absent."""
    worse_metabolic = metabolic > cardiac
    chance = np.clip(0.25 + 0.2 * np.maximum(cardiac, metabolic), 0.05, 0.75)
    kind = np.where(worse_metabolic, 3, np.where(uniform * 2 < chance, 1, 2))
    return np.where(uniform < chance, kind, 0).astype(np.uint8)
