"""Behind nginx with TLS, configured as docs/CURATOR_SERVER.md says: the sign-in, the pages, the API, a federation."""

from __future__ import annotations

import importlib.util
import os
import ssl
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from curator.http.conftest import SCHEMA, bearer
from curator.http.serving import served

import hedgerow
from hedgerow import HedgerowClassifier, Release

ROOT = Path(__file__).parents[3]


def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("proxy", ROOT / "scripts" / "proxy.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_documented_configuration_is_the_one_that_is_tested(tmp_path: Path) -> None:
    text = script().configuration(tmp_path, 4443, "http://127.0.0.1:9")
    for words in ("listen 127.0.0.1:4443 ssl;", "proxy_pass http://127.0.0.1:9;", "client_max_body_size 40m;", "Host $http_host;"):
        assert words in text


@pytest.mark.slow
@pytest.mark.skipif(not any(Path(path).exists() for path in ("/usr/sbin/nginx", "/usr/bin/nginx")), reason="nginx is not installed")
def test_all_of_it_through_nginx(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "curator"
    with served(folder, None, "--behind-tls", "--name", "Clinic A") as service:
        assert service.address is not None
        with script().proxy(service.address) as (address, certificate):
            trust = ssl.create_default_context(cafile=str(certificate))
            with httpx.Client(base_url=address, verify=trust, timeout=60) as client:
                # a link to a page, the sign-in, the page
                answer = client.get("/owner/datasets")
                assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?to=%2Fowner%2Fdatasets")
                form = {"token": service.token, "to": "/owner/datasets"}
                assert client.post("/sign-in", data=form, headers={"Origin": "https://elsewhere.example"}).status_code == 403
                answer = client.post("/sign-in", data=form, headers={"Origin": address})
                assert (answer.status_code, answer.headers["location"]) == (303, "/owner/datasets")
                cookie = answer.headers["set-cookie"]
                assert cookie.startswith("__Host-hedgerow=")
                assert {"Secure", "HttpOnly"} <= set(cookie.split("; "))
                assert "Datasets" in client.get("/owner/datasets").text
                # the API
                owner = bearer(service.token)
                body = {"name": "patients", "path": str(file), "schema": SCHEMA.to_toml()}
                assert client.post("/v1/owner/datasets", json=body, headers=owner).status_code == 201
                assert client.post("/v1/owner/datasets/patients/ceilings", json={"epsilon": "1"}, headers=owner).status_code == 201
                client.post("/v1/owner/people", json={"name": "ada"}, headers=owner)
                token = client.post("/v1/owner/tokens", json={"person": "ada", "days": 1}, headers=owner).json()["token"]
                grant = {"analyst": "ada", "dataset": "patients", "purposes": ["research"]}
                assert client.post("/v1/owner/grants", json=grant, headers=owner).status_code == 200
                assert client.get("/v1/datasets", headers={"Authorization": "Bearer hrw_wrong"}).status_code == 401
            HedgerowClassifier(SCHEMA, epsilon="0.5").public_plan(rows=500).save(tmp_path / "plan.json")
            sources = str(Path(hedgerow.__file__).parents[1])
            environment = {**os.environ, "PYTHONPATH": sources, "HEDGEROW_TOKEN": token, "SSL_CERT_FILE": str(certificate)}
            words = [f"{address}/datasets/patients", "--plan", "plan.json", "--trust", str(folder / "service.key.pub"), "--require-signed"]
            command = [sys.executable, "-m", "hedgerow", "federate", *words]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
    release = Release.load(tmp_path / "forest.json")
    assert [part.owner for part in release.certificate.parts] == ["Clinic A"]
    assert release.certificate.epsilon == "0.5"
