"""Functions that a query takes to the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Predictor = Callable[[NDArray[Any]], NDArray[np.int64]]
"""Rows of codes in, class codes out: row by row, the same answer for the same row whatever stands beside it."""
Probabilities = Callable[[NDArray[Any]], NDArray[np.float64]]
"""Rows of codes in, (rows, classes) class probabilities out: row by row, as a Predictor."""
