"""The HTTP API of the curator: routes, jobs, query sessions and workers. Nothing is answered that was not paid for."""
