"""Documents on disk: read with a bound on their size, written whole or not at all, known by a hash of their content."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hedgerow.errors import ReleaseError
from hedgerow.release.signing import Signature, holds

GZIP_ABOVE = 1 << 20  # bytes of JSON from which a file is compressed
MAX_BYTES = 1 << 28  # bytes of JSON that are read at most, compressed or not
MAX_RATIO = 100  # to which a file may be compressed
MAX_SIGNATURES = 100


class Head(msgspec.Struct):
    format: str
    version: int


class HashedDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`content_hash` is the SHA-256 of the document with an empty hash and no signatures; signatures are of that hash."""

    signatures: list[Signature] = []
    content_hash: str = ""


Hashed = TypeVar("Hashed", bound=HashedDocument)


def content_hash(document: HashedDocument) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(document, content_hash="", signatures=[]))).hexdigest()


def with_hash(document: Hashed) -> Hashed:
    return msgspec.structs.replace(document, content_hash=content_hash(document))


def signed_text(format: str, hash_: str) -> bytes:
    """What a signature signs: the kind of document and the hash of its content."""
    return f"{format} {hash_}".encode()


def check_hash(document: HashedDocument, format: str) -> None:
    """Damage is found by the hash; a change by somebody else, by the signatures."""
    if content_hash(document) != document.content_hash:
        raise ReleaseError("its content does not match its content hash: the file was changed or damaged. Get it again from its source.")
    if len(document.signatures) > MAX_SIGNATURES:
        raise ReleaseError(f"it has more than {MAX_SIGNATURES} signatures.")
    for signature in document.signatures:
        if not holds(signature, signed_text(format, document.content_hash)):
            raise ReleaseError(
                "a signature does not fit its content: the file was changed after it was signed. Get it again from its source."
            )


def head_of(data: bytes) -> Head:
    if not data.lstrip().startswith(b"{"):
        raise ReleaseError(
            "it is no sound release or plan, but something else (a table of rows?). Expected a file that `hedgerow fit`, `hedgerow count` "
            "or `hedgerow plan --save` has saved; of rows, make one by these first."
        )
    try:
        return msgspec.json.decode(data, type=Head)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"it is not a sound release document (nor a plan): {str(error)[:200]}") from error


def read_document(path: str | Path, what: str = "release", max_bytes: int = MAX_BYTES) -> bytes:
    """The JSON of a file, decompressed if need be, without the byte order mark that some editors write."""
    try:
        with open(path, "rb") as file:
            return _read_bounded(file, max_bytes).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise ReleaseError(f"{what} {str(path)!r} cannot be read: {error.strerror or type(error).__name__}.") from error
    except ReleaseError as error:
        raise ReleaseError(f"{path}: {error}") from error


def write_document(path: str | Path, data: bytes, what: str = "release", mode: int = 0o644) -> None:
    """Gzip when it is large or the name ends in .gz. The file is replaced whole or not at all. mode: who may read a new one."""
    path = Path(path).resolve()  # of a link the file that it names is replaced
    if path.suffix == ".gz" or len(data) > GZIP_ABOVE:
        data = gzip.compress(data, compresslevel=6, mtime=0)
    else:
        data += b"\n"
    new = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            new = Path(file.name)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(new, stat.S_IMODE(path.stat().st_mode) if path.exists() else mode)
        os.replace(new, path)
    except OSError as error:
        if new is not None:
            new.unlink(missing_ok=True)
        raise ReleaseError(f"{what} {str(path)!r} cannot be written: {error.strerror}.") from error


def _read_bounded(file: io.BufferedReader, max_bytes: int) -> bytes:
    head = file.peek(2)[:2]
    stream: Any = file
    if head == b"\x1f\x8b":
        stream = gzip.GzipFile(fileobj=file)
        packed = os.fstat(file.fileno()).st_size
        if packed * MAX_RATIO + GZIP_ABOVE < max_bytes:  # a small file that would fill the memory is made to do so
            max_bytes = packed * MAX_RATIO + GZIP_ABOVE
    try:
        data = stream.read(max_bytes + 1)
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise ReleaseError("the compressed file is damaged or truncated. Get it again from its source.") from error
    except Exception as error:  # zlib.error has no common base with the others
        raise ReleaseError("the compressed file is damaged. Get it again from its source.") from error
    if len(data) > max_bytes:
        raise ReleaseError(
            f"the document is larger than {max_bytes:,} bytes, or was compressed further than numbers can be. If you trust it, decompress "
            "it yourself, and load it with a larger max_bytes."
        )
    return bytes(data)
