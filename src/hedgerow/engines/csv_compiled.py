"""The loops of `csv_loops.py`, compiled."""

from __future__ import annotations

import numba
from numba.extending import register_jitable

from hedgerow.engines import csv_loops

for _called in (csv_loops._is_utf8, csv_loops._cells, csv_loops._record_end):  # by the others
    register_jitable(_called)

_compiled = numba.njit(nogil=True, cache=True)
split = _compiled(csv_loops.split)
gather = _compiled(csv_loops.gather)
joined = _compiled(csv_loops.joined)
