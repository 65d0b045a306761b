"""One query of Spark: run, watched, cancelled when the owner interrupts it, and its failures told by their kind alone."""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Callable
from typing import Any

from hedgerow import __version__
from hedgerow.engines.engine import Progress
from hedgerow.engines.spark_work import OTHER_VERSION
from hedgerow.errors import TableError

NAME = "Spark DataFrame"
WAIT = 0.2  # seconds between two looks at the progress
NEEDED = f"`pip install hedgerow=={__version__}` (with it come numpy, numba, duckdb and pyarrow) into the Python that executors run"
KINDS = (  # what Spark's text says, and what is told instead; the first that fits
    (r"No module named '(hedgerow|numpy|numba|duckdb|pyarrow|pandas|msgspec|narwhals|sklearn|scipy|joblib)\b",
     f"a Python package is missing on an executor. Every executor needs {NEEDED} (PYSPARK_PYTHON), of the same minor version as here"),
    (re.escape(OTHER_VERSION), f"an executor has another version of hedgerow. Every executor needs {NEEDED}"),
    (r"PYTHON_VERSION_MISMATCH", "executors run another minor version of Python. Set PYSPARK_PYTHON to the same as here"),
    (r"FAILED_READ_FILE|CANNOT_READ_FILE|Could not read footer|is not a Parquet file|FileNotFoundException|FILE_NOT_EXIST",
     "a file cannot be read: it is damaged, it was taken away, or its columns have other types than the table's"),
    (r"MALFORMED_(CSV|RECORD)", "a file holds lines that are no rows"),
    (r"ExecutorLostFailure|SparkOutOfMemory|executor lost|Max number of executor failures|Master removed our application",
     "executors were lost more often than Spark tries again (spark.task.maxFailures). Often they had too little memory"),
    (r"Python worker exited unexpectedly", "Python ended on an executor, again and again. Often it had too little memory "
     "(spark.executor.memoryOverhead)"),
    (r"maxResultSize", "the counts of all partitions are larger than spark.driver.maxResultSize. Use fewer partitions"),
    (r"SPARK_JOB_CANCELLED|OPERATION_CANCELED|cancelled part of|cancelled as part of", "the job was cancelled"),
)  # fmt: skip


class Job:
    """One query, run by a thread of its own: this one waits, tells how far it is, and cancels it when it is interrupted."""

    def __init__(self, session: Any, query: Callable[[], Any], progress: Progress | None = None, charged: bool = True) -> None:
        self._query = query
        self._charged = charged
        self._progress = progress
        self._name = f"hedgerow-{uuid.uuid4()}"
        self._session = session
        self._context = None if type(session).__module__.startswith("pyspark.sql.connect") else session.sparkContext
        self._rows: list[Any] = []
        self._error: BaseException | None = None
        self._share = 0.0

    def collect(self) -> list[Any]:
        from pyspark import InheritableThread

        thread = InheritableThread(target=self._run, session=self._session, daemon=True)
        if self._context is None and self._progress is not None:
            self._session.registerProgressHandler(self._stages_of_connect)
        try:
            thread.start()
            while thread.is_alive():
                thread.join(WAIT)
                self._tell()
        except BaseException:
            self._cancel()
            thread.join(10)
            raise
        finally:
            if self._context is None and self._progress is not None:
                self._session.removeProgressHandler(self._stages_of_connect)
        if self._error is not None:
            raise failure(self._error, self._charged) from None
        if self._progress is not None:
            self._progress(1.0)
        return self._rows

    def _run(self) -> None:
        try:
            if self._context is None:
                self._session.addTag(self._name)
            else:
                self._context.setJobGroup(self._name, "hedgerow: counts", interruptOnCancel=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used here
                frame = self._query()
            self._rows = frame.collect()
        except BaseException as error:
            self._error = error

    def _cancel(self) -> None:
        if self._context is None:
            self._session.interruptTag(self._name)
        else:
            self._context.cancelJobGroup(self._name)

    def _tell(self) -> None:
        if self._progress is None:
            return
        if self._context is not None:
            tracker = self._context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._name)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            self._reached([(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None])
        self._progress(self._share)

    def _stages_of_connect(self, stages: Any, **_: Any) -> None:
        self._reached([(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()])

    def _reached(self, stages: list[tuple[int, int]]) -> None:
        """The share of the tasks that Spark has planned so far; it falls back where Spark plans more."""
        tasks = sum(many for _, many in stages)
        if tasks:
            self._share = min(1.0, sum(done for done, _ in stages) / tasks)


def failure(error: BaseException, charged: bool) -> BaseException:
    """The error to raise instead. Nothing of the first is kept in it."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    text = str(error)
    kind = next((sentence for pattern, sentence in KINDS if re.search(pattern, text)), "look into Spark's own log, which may quote rows")
    end = "Nothing was released; what the request has charged stays spent." if charged else "Nothing was spent."
    return TableError(f"{NAME}: the job failed ({type(error).__name__}): {kind}. {end}")
