"""A Spark cluster on this machine: one standalone master and some workers, as operating-system processes of their own.

The pip package of Spark has no start scripts, so the classes are started through its `bin/spark-class`. Loopback only; nothing is left
behind. As a program it starts a cluster for trying things out: `python tests/spark/cluster.py`, ended by Ctrl-C.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

HOST = "127.0.0.1"
PATIENCE = 90.0  # seconds for a Java program to start on a busy machine


@dataclass
class Cluster:
    """The address of the master, and the processes; `workers[i]` may be killed on purpose."""

    url: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def kill_worker(self, number: int) -> None:
        """As if the machine were lost: no signal that could be answered. Its executors end when they miss it."""
        self.workers[number].send_signal(signal.SIGKILL)
        self.workers[number].wait()


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def start(folder: Path, name: str, arguments: list[str], memory: str = "256m") -> tuple[subprocess.Popen[bytes], Path]:
    """One class of Spark in a process group of its own, and the file that it logs to."""
    log = folder / f"{name}.log"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYTEST")},
        "SPARK_HOME": str(spark_home()),
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_WORKER_DIR": str(folder / name),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(spark_home() / "bin" / "spark-class"), *arguments], stdout=output, stderr=output, env=environment, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
    return process, log


def wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """The first group of the pattern, once the log has it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.1)
    raise RuntimeError(f"{log.name}: Spark did not start:\n{log.read_text(errors='replace')[-2000:]}")


@contextmanager
def standalone(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """A master and its workers, ended with their executors whatever happens."""
    started: list[subprocess.Popen[bytes]] = []
    with TemporaryDirectory(prefix="hedgerow-spark-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            master = ["org.apache.spark.deploy.master.Master", "--host", HOST, "--port", "0", "--webui-port", "0"]
            process, log = start(folder, "master", master)
            started.append(process)
            cluster = Cluster(wait_for(log, r"Starting Spark master at (spark://\S+)", process))
            for number in range(workers):
                worker = [
                    "org.apache.spark.deploy.worker.Worker", "--host", HOST, "--webui-port", "0",
                    "--cores", str(cores), "--memory", memory, cluster.url,
                ]  # fmt: skip
                process, log = start(folder, f"worker{number}", worker)
                started.append(process)
                cluster.workers.append(process)
                wait_for(log, r"(Successfully registered) with master", process)
            yield cluster
        finally:
            for process in reversed(started):
                end(process)


@contextmanager
def connect_server(master: str = "local[2]") -> Iterator[str]:
    """A Spark Connect server; its address. The client of it has no Java and no SparkContext."""
    import socket

    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    with TemporaryDirectory(prefix="hedgerow-connect-", ignore_cleanup_errors=True) as name:
        arguments = [
            "org.apache.spark.deploy.SparkSubmit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--master", master, "--driver-memory", "1g", "--conf", f"spark.connect.grpc.binding.port={port}",
            "--conf", f"spark.connect.grpc.binding.address={HOST}", "--conf", "spark.ui.enabled=false",
            "--conf", f"spark.driver.bindAddress={HOST}", "--conf", f"spark.driver.host={HOST}", "spark-internal",
        ]  # fmt: skip
        process, log = start(Path(name), "connect", arguments, memory="1g")
        try:
            wait_for(log, r"(Spark Connect server started)", process)
            yield f"sc://{HOST}:{port}"
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """The process and its children (executors and their Python workers): all are in the group that it was started in."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


if __name__ == "__main__":
    with standalone() as running:
        print(running.url, flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
