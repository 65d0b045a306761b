"""Every query, owners who count together, and every private estimator under attack, in the size of CI (`make audit-ci`). `make audit`
does more, and stores it: three ε instead of one, more runs, and more fits.

False alarms: the verdicts of all attacks together are wrong with a chance below one in a million (audits.LEVEL). Power is asserted where a
sound attack must find nearly all of ε; the bounds used are right with 99.9 %, and the marks below leave room for that and for chance.
"""

from __future__ import annotations

import pytest

from hedgerow.queries import QUERIES, CountingQuery
from hedgerow_experiments.audits import finding_in, jobs, work
from hedgerow_experiments.experiment import Job, Result

COUNTS = {query.name for query in QUERIES if issubclass(query, CountingQuery)}
POWERFUL = COUNTS - {"boost_round", "score_bins"} | {"choose", "choose, max", "best", "choose_tree"}  # counts and permute-and-flip
AT_LEAST, OF_TWO_AT_LEAST, EXPONENTIAL_AT_LEAST = 0.8, 0.2, 0.5  # of ε, at 99.9 %; of two events an attack on one number sees one
MOST_RUNS, FITS = 200_000, 4_000
IN_CI = [{**job, "runs": FITS if "fit" in job else min(job["runs"], MOST_RUNS)} for job in jobs(quick=True) if job["epsilon"] == "1"]


def named(job: Job) -> str:
    return " ".join(str(value) for value in job.values())


@pytest.mark.audit
@pytest.mark.statistical
@pytest.mark.parametrize("job", IN_CI, ids=named)
def test_no_attack_finds_more_than_was_paid(job: Job) -> None:
    finding = finding_in(Result(job, work(job), 0.0, ""))
    assert not finding.violated, finding
    found, epsilon = finding.bounds["99.9 %"], float(job["epsilon"])
    if job.get("verb") in POWERFUL or "together" in job:
        assert found >= AT_LEAST * epsilon, finding
    if job.get("verb") in ("boost_round", "score_bins"):
        assert found >= OF_TWO_AT_LEAST * epsilon, finding
    if job.get("verb") == "choose, exponential mechanism":
        assert found >= EXPONENTIAL_AT_LEAST * epsilon, finding
