"""The clients of the curator's load test, a process of their own: requests at fixed moments, whether or not the last was answered.

    python -m benchmarks.curator_client HOST PORT
    and on stdin {"rate": …, "seconds": …, "requests": [{"method", "path", "headers", "body"}]}

Prints {"milliseconds": […], "statuses": {…}}. A latency counts from the moment at which the request was due, so that a service which
stands still for a second is seen by all requests that were due in it, and not by one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from typing import Any

CONNECTIONS = 64


def encoded(host: str, request: dict[str, Any]) -> bytes:
    body = json.dumps(request["body"]).encode() if request.get("body") is not None else b""
    headers = {"Host": host, "Content-Length": str(len(body)), "Content-Type": "application/json", **request["headers"]}
    lines = [f"{request['method']} {request['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def answered(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes) -> int:
    """The status of an answer that has come as a whole."""
    reader, writer = connection
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [int(line.partition(b":")[2]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    await reader.readexactly(lengths[0])
    return int(head.split(b" ", 2)[1])


async def measured(host: str, port: int, given: dict[str, Any]) -> dict[str, Any]:
    requests = [encoded(host, request) for request in given["requests"]]
    free: asyncio.LifoQueue[Any] = asyncio.LifoQueue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection(host, port))
    loop = asyncio.get_running_loop()
    taken: list[float] = []
    statuses: Counter[int] = Counter()

    async def one(due: float, request: bytes) -> None:
        connection = await free.get()
        try:
            status = await answered(connection, request)
        except (asyncio.IncompleteReadError, ConnectionError):  # the service closes a connection that was not used for a while
            connection = await asyncio.open_connection(host, port)
            status = await answered(connection, request)
        statuses[status] += 1
        taken.append(1000 * (loop.time() - due))
        free.put_nowait(connection)

    start, tasks = loop.time() + 0.5, []
    for number in range(int(given["rate"] * given["seconds"])):
        due = start + number / given["rate"]
        await asyncio.sleep(due - loop.time())
        tasks.append(asyncio.create_task(one(due, requests[number % len(requests)])))
    await asyncio.gather(*tasks)
    return {"milliseconds": taken, "statuses": dict(statuses)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)))))
