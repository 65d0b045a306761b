"""The service as an ASGI application: the API, the pages, and the middleware around both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from hedgerow import __version__
from hedgerow.curator.http import analyst_routes, owner_routes, responses, session_routes
from hedgerow.curator.http.errors import Refusal, install_error_handlers
from hedgerow.curator.http.jobs import Jobs
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.middleware import ServiceMiddleware
from hedgerow.curator.http.party import ServiceParty
from hedgerow.curator.http.request_context import Service
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.http.sessions import Sessions
from hedgerow.curator.http.storing import Storage
from hedgerow.curator.web import datasets, owner_datasets, owner_ledger, owner_people, results, sign_in
from hedgerow.curator.web.authentication import PageAuthentication
from hedgerow.errors import HedgerowError

API = (owner_routes.router, analyst_routes.router, session_routes.router)
PAGES = (sign_in.router, datasets.router, results.router, owner_ledger.router, owner_datasets.router, owner_people.router)
NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}  # whatever the environment says
ERRORS: dict[int | str, dict[str, Any]] = {"default": {"description": "Refused", "model": responses.Error}}


def application(curator: Curator, limits: Limits, name: str = "", behind_tls: bool = False, party: ServiceParty | None = None) -> FastAPI:
    """One service for a curator, whose owner is called `name`. Its jobs begin and end with the server.

    party: who it is among owners who count together
    behind_tls: a proxy before it speaks https, so that cookies of the pages are marked Secure.
    """
    storage = Storage(curator)
    service = Service(curator, limits, storage, Jobs(curator, limits, storage), Sessions(curator, limits, storage), name, party)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.jobs.start()
        service.sessions.start()
        yield
        await asyncio.gather(run_in_threadpool(service.jobs.stop), run_in_threadpool(service.sessions.stop))

    app = FastAPI(
        title="Hedgerow curator", version=__version__, lifespan=running, docs_url=None, redoc_url=None, responses=ERRORS,
        redirect_slashes=False, telemetry=NO_TELEMETRY,
    )  # fmt: skip
    app.state.service = service
    pages = app.state.page_authentication = PageAuthentication(curator.accounts, behind_tls)
    install_error_handlers(app, pages.error_response)
    app.add_middleware(ServiceMiddleware, accounts=curator.accounts, limits=limits, pages=pages)

    @app.get("/health", tags=["service"], response_model=responses.Status)
    async def health() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/ready", tags=["service"], response_model=responses.Status)
    def ready() -> JSONResponse:
        """The ledger can be read, answers can be stored, and jobs are taken."""
        try:
            curator.ledger.head()
            fine = service.jobs.ready and curator.ledger.in_charge()
        except HedgerowError:
            fine = False
        if not fine:
            raise Refusal(503, "not_ready", "The service is not ready.")
        return JSONResponse({"status": "ready"})

    for router in (*API, *PAGES):
        app.include_router(router)
    return app
