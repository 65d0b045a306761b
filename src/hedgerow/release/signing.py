"""Ed25519 signatures: who vouches for a document. The keys are files; `cryptography` does the mathematics.

A private key is PEM, readable by its owner alone; a public key is one line as OpenSSH writes it, with a name at its end.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hedgerow.errors import KeyFileError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KIND = "ssh-ed25519"
MAX_KEY_BYTES = 10_000
MAX_NAME = 200  # characters


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`key` is a public key, "ssh-ed25519 AAAA…"; `value` the signature in base 64."""

    key: str
    value: str


@dataclass(frozen=True)
class PublicKey:
    """A public key and the name that its file gives it."""

    text: str
    name: str

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.text)


def fingerprint(key: str) -> str:
    """As `ssh-keygen -l` shows it: short enough to be compared over the telephone."""
    try:
        blob = base64.b64decode(key.split(" ")[1], validate=True)
    except (IndexError, binascii.Error, ValueError):
        return "not a key"
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def make_key(path: Path, name: str) -> PublicKey:
    """Write a new private key to `path` and its public key beside it, with the ending .pub. Neither may exist."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not name.isprintable() or len(name) > MAX_NAME:
        raise KeyFileError(f"key: the name must be one short line that can be printed, got {name[:40]!r}.")
    if not path.name:
        raise KeyFileError(f"key {str(path)!r}: expected the name of a new file.")
    public_path = path.with_name(path.name + ".pub")
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = PublicKey(_text_of(key.public_key()), name)
    _write_new(public_path, f"{public.text} {name}".rstrip().encode() + b"\n", 0o644)
    try:
        _write_new(path, private, 0o600)
    except KeyFileError:
        public_path.unlink(missing_ok=True)
        raise
    return public


def load_private_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    data = _read(path)
    key: Any = None
    try:
        if b"OPENSSH PRIVATE KEY" in data:
            key = serialization.load_ssh_private_key(data, password=None)
        else:
            key = serialization.load_pem_private_key(data, password=None)
    except Exception:  # whatever the library says, it may not repeat what a private key file holds
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(
            f"key {str(path)!r}: not an Ed25519 private key without a password; expected the file that "
            "`hedgerow key new` writes (the one without .pub)."
        )
    return key


def load_public_key(path: Path) -> PublicKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise KeyFileError(f"key {str(path)!r} is a private key; expected its public half, whose name ends in .pub.")
    try:
        if len(data.splitlines()) != 1:
            raise ValueError("one key to a file")
        key = serialization.load_ssh_public_key(data)
        name = " ".join(data.decode("utf-8").split()[2:])
    except Exception:  # several kinds, none of which says more
        key, name = None, ""
    name = name if name.isprintable() and len(name) <= MAX_NAME else ""
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFileError(f"key {str(path)!r}: not an Ed25519 public key; expected one line, {KIND} AAAA… and a name.")
    return PublicKey(_text_of(key), name or path.stem)


def sign(key: Ed25519PrivateKey, message: bytes) -> Signature:
    return Signature(_text_of(key.public_key()), base64.b64encode(key.sign(message)).decode())


def holds(signature: Signature, message: bytes) -> bool:
    """Whether the signature is of this message by this key."""
    from cryptography.exceptions import InvalidSignature

    if len(signature.key) > 200 or len(signature.value) > 200:
        return False
    try:
        key = _public_key(signature.key)
        if key is None:
            return False
        key.verify(base64.b64decode(signature.value, validate=True), message)
    except (InvalidSignature, ValueError, UnicodeError, binascii.Error):
        return False
    except Exception:  # cryptography's own error for an algorithm that it does not know
        return False
    return True


@lru_cache(maxsize=64)  # a file of heads has one key and many signatures
def _public_key(text: str) -> Ed25519PublicKey | None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = serialization.load_ssh_public_key(text.encode())
    return key if isinstance(key, Ed25519PublicKey) and _text_of(key) == text else None


def public_text(key: Ed25519PrivateKey) -> str:
    """Its public half, as signatures name it."""
    return _text_of(key.public_key())


def _text_of(key: Ed25519PublicKey) -> str:
    from cryptography.hazmat.primitives import serialization

    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise KeyFileError(f"key {str(path)!r} cannot be read: {error.strerror}.") from error


def _write_new(path: Path, data: bytes, mode: int) -> None:
    made = False
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            made = True
            file.write(data)
    except FileExistsError as error:
        raise KeyFileError(f"key {str(path)!r} exists already and is never replaced. Choose another name.") from error
    except OSError as error:
        if made:  # no half of a key is left behind
            path.unlink(missing_ok=True)
        raise KeyFileError(f"key {str(path)!r} cannot be written: {error.strerror}.") from error
