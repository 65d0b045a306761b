"""Four cells of the crash matrix, in every run of `make curator-test`; `make crash-test` has all of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from curator.http.test_crash_matrix import EXPECTED, Bench

CELLS = (
    ("job", "kill -9 of both", "query 1"), ("job", "database read-only for a while", "settle"),
    ("session", "kill -9 of the service", "reserve"), ("session", "SIGSTOP of the service, then kill -9", "store"),
)  # fmt: skip


@pytest.mark.curator
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fault", "point"), CELLS)
def test_what_is_left_after_a_fault(tmp_path: Path, file: Path, kind: str, fault: str, point: str) -> None:
    bench = Bench(kind, str(tmp_path / "curator"), tmp_path, None, file)
    with closing(bench.curator):
        try:
            assert bench.cell(fault, point) == EXPECTED[kind][fault][point]
        finally:
            if bench.service is not None:
                bench.service.kill_all()
