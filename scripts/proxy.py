#!/usr/bin/env python3
"""nginx with TLS before a service, for tests: the configuration of docs/CURATOR_SERVER.md, with a certificate made for it; gone afterwards.

    scripts/proxy.py run http://127.0.0.1:8300 COMMAND …

The command finds HEDGEROW_PROXY=https://localhost:PORT and SSL_CERT_FILE, the certificate to trust. nginx is Debian's package; where it is
missing, root installs it and others are told to.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs" / "CURATOR_SERVER.md"
PROGRAMS = ("nginx", "/usr/sbin/nginx")
PATIENCE = 30  # seconds until it listens
WHOLE = """
pid {folder}/pid;
error_log {folder}/error.log;
daemon off;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


def program() -> str:
    found = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing the Debian package nginx-light …", file=sys.stderr)
        quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}, "stdout": subprocess.DEVNULL}
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "nginx-light"], check=True, **quiet)  # type: ignore[call-overload]
        found = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    if found is None:
        raise SystemExit("nginx is not on this machine. Install it: `apt-get install nginx-light` as root on Debian and Ubuntu.")
    return found


def documented() -> str:
    """The server block that owners are told to write."""
    (block,) = re.findall(r"With nginx:\n\n```\n(server \{.*?\n\})\n```", DOCUMENT.read_text(encoding="utf-8"), re.S)
    return str(block)


def configuration(folder: Path, port: int, service: str) -> str:
    """That block for this port, this certificate and this service; nothing else in it is changed."""
    server = documented()
    for old, new in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("server_name curator.example.org;", "server_name localhost;"),
        ("/etc/ssl/curator.pem", f"{folder}/certificate.pem"),
        ("/etc/ssl/curator.key", f"{folder}/key.pem"),
        ("http://127.0.0.1:8300", service),
    ):
        if old not in server:
            raise SystemExit(f"{DOCUMENT.name}: its configuration of nginx has no {old!r}.")
        server = server.replace(old, new)
    return WHOLE.format(folder=folder, server=server)


def make_certificate(folder: Path) -> Path:
    """For localhost, valid for a day, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with open(os.open(folder / "key.pem", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return folder / "certificate.pem"


@contextmanager
def proxy(service: str) -> Iterator[tuple[str, Path]]:
    """Its address and the certificate, while it runs."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-proxy-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the workers of a proxy that root starts are another account's
        certificate = make_certificate(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "nginx.conf").write_text(configuration(folder, port, service))
        words = [program(), "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(process, port, folder / "error.log")
            yield f"https://localhost:{port}", certificate
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"nginx did not start:\n{log.read_text() if log.exists() else ''}") from None
            time.sleep(0.02)


def main(words: list[str]) -> int:
    if len(words) < 3 or words[0] != "run":
        raise SystemExit(__doc__)
    with proxy(words[1]) as (address, certificate):
        return subprocess.run(
            words[2:], env={**os.environ, "HEDGEROW_PROXY": address, "SSL_CERT_FILE": str(certificate)}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
