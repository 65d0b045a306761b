"""What a service says and logs during a whole day, with failures: no token, no value of a row, of a schema or of a request."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from curator.http.conftest import FOREST, bearer
from curator.http.serving import served

from hedgerow import Categorical, Numeric, Schema, Target

SCHEMA = Schema([Numeric("age", 0, 120), Categorical("ward", ["planted-schema-a", "planted-schema-b"])], Target("class", ["a", "b"]))
ROWS = ["41,planted-row,a", "977431,planted-schema-a,b", "42,planted-schema-b,planted-class", "43,,a"]
BROKEN = 'age,ward,class\n41,planted-broken,a\nplanted-number,planted-schema-a,b,planted-more,planted-most\n"planted-quote,a,b\n'
PLANTED = ("planted", "977431", "hrw_")


@pytest.mark.slow
def test_nothing_private_is_logged(tmp_path: Path) -> None:
    file, other, parquet = tmp_path / "patients.csv", tmp_path / "other.csv", tmp_path / "people.parquet"
    for path in (file, other):
        path.write_text("\n".join(["age,ward,class", *(ROWS * 100)]) + "\n")
    columns = {"age": [41.0] * 300, "ward": ["planted-row"] * 300, "class": ["a"] * 300}
    pyarrow.parquet.write_table(pyarrow.table(columns), parquet)
    with served(tmp_path / "curator") as service, service.client() as client:
        token = service.token
        owner, wrong = bearer(token), bearer("hrw_planted")
        answers: list[Any] = []

        def ask(who: dict[str, str], method: str, path: str, body: Any = None, key: str | None = None) -> Any:
            headers = who if key is None else {**who, "Idempotency-Key": key}
            answers.append(client.request(method, path, json=body, headers=headers))
            return answers[-1].json()

        for name, path in (("patients", file), ("other", other), ("people", parquet)):
            ask(owner, "POST", "/v1/owner/datasets", {"name": name, "path": str(path), "schema": SCHEMA.to_toml()})
            ask(owner, "POST", f"/v1/owner/datasets/{name}/ceilings", {"epsilon": 5})
        ask(owner, "POST", "/v1/owner/people", {"name": "ada"})
        ada = bearer(ask(owner, "POST", "/v1/owner/tokens", {"person": "ada"})["token"])
        for name in ("patients", "other", "people"):
            ask(owner, "POST", "/v1/owner/grants", {"analyst": "ada", "dataset": name, "purposes": ["research"]})

        def ended(who: dict[str, str], path: str, body: Any, key: str) -> Any:
            job = ask(who, "POST", path, body, key)
            while job["state"] in ("waiting", "running"):
                time.sleep(0.05)
                job = ask(who, "GET", f"/v1/jobs/{job['id']}")
            return job

        good = ended(ada, "/v1/datasets/patients/forests", FOREST, "planted-key")
        assert good["state"] == "done"
        assert ended(ada, "/v1/datasets/patients/scores", {**FOREST, "release": good["id"]}, "score")["state"] == "done"
        ask(ada, "POST", "/v1/datasets/patients/dummy", FOREST)
        other.write_text(BROKEN)  # what was registered is no longer there
        parquet.write_bytes(parquet.read_bytes()[:-40] + b"planted")
        for who in (ada, owner):
            ended(who, "/v1/datasets/other/forests", FOREST, "other")
            assert ended(who, "/v1/datasets/people/forests", FOREST, "people")["state"] == "failed"
        bad_schema = SCHEMA.to_toml().replace("planted-schema-b", "planted-schema-a")
        for path, text in ((file, bad_schema), (file, "planted = ["), (parquet, SCHEMA.to_toml()), (tmp_path / "no.csv", SCHEMA.to_toml())):
            ask(owner, "POST", "/v1/owner/datasets", {"name": "x", "path": str(path), "schema": text})
            assert answers[-1].status_code == 422, path
        for who in (ada, owner, wrong):
            ask(who, "POST", "/v1/datasets/patients/forests", {**FOREST, "epsilon": "planted", "planted": 1}, "k")
            ask(who, "GET", "/v1/datasets/planted")
            ask(who, "GET", "/v1/planted?planted=planted")
            ask(who, "POST", "/v1/datasets/patients/forests", {**FOREST, "epsilon": 4.75}, "too much")
        assert {200, 201, 202, 401, 402, 404, 422} <= {answer.status_code for answer in answers}
        analysts = "".join(answer.text for answer in answers if answer.request.headers["Authorization"] == ada["Authorization"])
        assert not [word for word in ("planted-row", "planted-broken", "planted-number", "977431") if word in analysts]
        service.stop()
    log, said = service.logged.read_text(), service.said.read_text().replace(token, "")
    assert {"request", "job done", "job failed"} <= {line["event"] for line in service.log()}
    for word in PLANTED:
        assert [line for line in (log + said).splitlines() if word in line] == []
