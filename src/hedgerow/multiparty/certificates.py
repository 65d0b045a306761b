"""The key and the certificate of an owner, and TLS between owners that know each other's certificates. OpenSSL does the mathematics.

A certificate is signed by its own key and stands in the parties' file: nobody else vouches for it, and no other certificate is taken.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hedgerow.errors import KeyFileError, TogetherError

YEARS = 10


def make_certificate(key_path: Path, name: str) -> str:
    """Write a new private key, readable by its owner alone, and give the certificate for it as PEM. The file may not exist."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=365 * YEARS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, None)
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        with open(os.open(key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(private)
    except OSError as error:
        raise KeyFileError(f"key {str(key_path)!r}: it cannot be written ({error.strerror}). Choose the name of a new file.") from error
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def fingerprint(certificate: str) -> str:
    """SHA-256 of the certificate, by which it is known."""
    try:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.strip() + "\n")).hexdigest()
    except ValueError as error:
        raise TogetherError("parties: a certificate is not PEM; expected what `hedgerow together init` writes.") from error


def tls(server: bool, certificate: str, key: Path, others: Sequence[str]) -> ssl.SSLContext:
    """TLS 1.3 that shows one's own certificate and takes the given ones only; whose it is, is compared afterwards (`peer_of`)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a party is known by its certificate, wherever it is
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(cadata="\n".join(others))
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as public:  # the certificate, which is public: OpenSSL reads files alone
            public.write(certificate)
            public.flush()
            context.load_cert_chain(public.name, key)
    except FileNotFoundError as error:
        raise KeyFileError(f"key {str(key)!r}: there is no such file; expected the key that `hedgerow together init` wrote.") from error
    except (ssl.SSLError, OSError) as error:
        raise KeyFileError(
            f"key {str(key)!r}: it does not belong to your certificate in the parties' file, or one of these is damaged."
        ) from error
    return context


def peer_fingerprint(connection: ssl.SSLObject | None) -> str:
    """The fingerprint of the certificate that the other side has shown."""
    shown = None if connection is None else connection.getpeercert(binary_form=True)
    return "" if shown is None else hashlib.sha256(shown).hexdigest()
