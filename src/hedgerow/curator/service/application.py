"""The service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from hedgerow import __version__
from hedgerow.curator.service import analysts, owners, refusals, verbs
from hedgerow.curator.service.asking import Service
from hedgerow.curator.service.bundle import Curator
from hedgerow.curator.service.gate import Gate
from hedgerow.curator.service.jobs import Jobs
from hedgerow.curator.service.limits import Limits
from hedgerow.curator.service.sessions import Sessions
from hedgerow.errors import HedgerowError

PROBLEM = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
ERRORS: dict[int | str, dict[str, Any]] = {"default": {"description": "Refused", "content": {"application/json": {"schema": PROBLEM}}}}


def application(curator: Curator, limits: Limits, name: str = "") -> FastAPI:
    """One service on the books of a curator, whose owner is called `name`. Its jobs begin and end with the server."""
    service = Service(curator, limits, Jobs(curator, limits), Sessions(curator, limits), name)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.jobs.start()
        service.sessions.start()
        yield
        await run_in_threadpool(service.sessions.stop)
        await run_in_threadpool(service.jobs.stop)

    app = FastAPI(
        title="Hedgerow curator", version=__version__, lifespan=running, docs_url=None, redoc_url=None, responses=ERRORS,
        redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    refusals.install(app)
    app.add_middleware(Gate, accounts=curator.accounts, limits=limits)

    @app.get("/health", tags=["service"])
    async def health() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/ready", tags=["service"])
    def ready() -> JSONResponse:
        """The ledger can be read, and jobs are taken."""
        try:
            curator.ledger.head()
            fine = service.jobs.ready
        except HedgerowError:
            fine = False
        if not fine:
            raise refusals.Refusal(503, "not_ready", "The service is not ready.")
        return JSONResponse({"status": "ready"})

    app.include_router(owners.router)
    app.include_router(analysts.router)
    app.include_router(verbs.router)
    return app
