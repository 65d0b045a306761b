"""Keys and signatures: files that are never replaced, every wrong kind of key refused, and no word of a private key in any error."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import KeyFileError
from hedgerow.release.signing import PublicKey, Signature, fingerprint, holds, load_private_key, load_public_key, make_key, sign

PEM, OPENSSH, RAW = serialization.Encoding.PEM, serialization.Encoding.OpenSSH, serialization.Encoding.Raw
PKCS8, SSH_PRIVATE = serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.OpenSSH
SSH_PUBLIC, PEM_PUBLIC = serialization.PublicFormat.OpenSSH, serialization.PublicFormat.SubjectPublicKeyInfo
OPEN = serialization.NoEncryption()
KEY, OTHER_KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()

# RFC 8032, 7.1, test 2
SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
MESSAGE = bytes.fromhex("72")
SIGNATURE = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def ssh_blob(public: bytes) -> bytes:
    """A public key as RFC 8709 writes it: two texts, each after its length."""
    return b"\0\0\0\x0bssh-ed25519" + b"\0\0\0\x20" + public


def text_of(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(OPENSSH, SSH_PUBLIC).decode()


# ---------------------------------------------------------------- making keys


def test_a_new_pair(tmp_path: Path) -> None:
    made = make_key(tmp_path / "north", "North Hospital")
    private, public = load_private_key(tmp_path / "north"), load_public_key(tmp_path / "north.pub")
    assert made == public == PublicKey(text_of(private), "North Hospital")
    assert (tmp_path / "north.pub").read_text() == f"{made.text} North Hospital\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["north", "north.pub"]
    assert holds(sign(private, b"a"), b"a")
    assert sign(private, b"a").key == public.text


def test_each_pair_is_another(tmp_path: Path) -> None:
    assert len({make_key(tmp_path / str(i), "").text for i in range(20)}) == 20


def test_only_its_owner_can_read_a_private_key(tmp_path: Path) -> None:
    before = os.umask(0)  # the most generous one: nothing is taken away from what is asked for
    try:
        make_key(tmp_path / "north", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "north").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "north.pub").stat().st_mode) == 0o644


def test_a_private_key_is_not_readable_by_others_even_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[str, tuple[int, int]] = {}
    real = os.open

    def watched(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        opened[Path(path).name] = (flags, mode)
        return real(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", watched)
    make_key(tmp_path / "north", "")
    flags, mode = opened["north"]
    assert mode == 0o600
    assert flags & os.O_EXCL
    assert flags & os.O_CREAT


@pytest.mark.parametrize("there", ["north", "north.pub"])
@pytest.mark.parametrize("what", ["a file", "an empty file", "a folder", "a link to nothing", "a link to a file"])
def test_nothing_is_ever_replaced(there: str, what: str, tmp_path: Path) -> None:
    path, elsewhere = tmp_path / there, tmp_path / "elsewhere"
    if what in ("a file", "an empty file"):
        path.write_bytes(b"" if what == "an empty file" else b"precious")
    elif what == "a folder":
        path.mkdir()
    else:
        path.symlink_to(elsewhere)
        if what == "a link to a file":
            elsewhere.write_bytes(b"precious")
    before = {p.name: p.read_bytes() if p.is_file() else None for p in tmp_path.iterdir()}
    with pytest.raises(KeyFileError, match=f"{there}' exists already and is never replaced"):
        make_key(tmp_path / "north", "")
    assert {p.name: p.read_bytes() if p.is_file() else None for p in tmp_path.iterdir()} == before  # and no half of a pair


def test_a_pair_is_not_made_twice(tmp_path: Path) -> None:
    first = make_key(tmp_path / "north", "")
    with pytest.raises(KeyFileError, match="never replaced"):
        make_key(tmp_path / "north", "")
    assert load_public_key(tmp_path / "north.pub").text == text_of(load_private_key(tmp_path / "north")) == first.text


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="cannot be written: No such file"):
        make_key(tmp_path / "none" / "north", "")
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyFileError, match="cannot be written: Not a directory"):
        make_key(tmp_path / "file" / "north", "")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["two\nlines", "two\rlines", "a" * 201])
def test_a_name_is_one_short_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="one short line"):
        make_key(tmp_path / "north", name)
    assert list(tmp_path.iterdir()) == []


def test_without_a_name_a_key_is_called_as_its_file(tmp_path: Path) -> None:
    assert make_key(tmp_path / "north", "").name == ""
    assert (tmp_path / "north.pub").read_text().count(" ") == 1
    assert load_public_key(tmp_path / "north.pub").name == "north"


FULL_DISK = """
import resource, sys
from pathlib import Path
from hedgerow.errors import KeyFileError
from hedgerow.release.signing import make_key
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    make_key(Path(sys.argv[1]), sys.argv[2])
except KeyFileError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["", "a" * 100], ids=["full at the private key", "full at the public key"])
def test_a_full_disk_leaves_no_half_of_a_pair(name: str, tmp_path: Path) -> None:
    """No file may grow beyond 100 bytes: a private key has 119, a public key 81 and its name."""
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "north"), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cannot be written" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["\x1b[2Jnorth", "north\u2028", "north\x00", "\udcff"])
def test_a_name_can_be_printed(name: str, tmp_path: Path) -> None:
    """It is shown wherever a signature is."""
    with pytest.raises(KeyFileError):
        make_key(tmp_path / "north", name)


@pytest.mark.parametrize("path", [Path("/"), Path(".")])
def test_a_path_without_a_name(path: Path) -> None:
    with pytest.raises(KeyFileError):
        make_key(path, "")


# ---------------------------------------------------------------- reading keys


def test_keys_of_openssh_are_read(tmp_path: Path) -> None:
    (tmp_path / "id").write_bytes(KEY.private_bytes(PEM, SSH_PRIVATE, OPEN))
    assert b"OPENSSH PRIVATE KEY" in (tmp_path / "id").read_bytes()
    assert text_of(load_private_key(tmp_path / "id")) == text_of(KEY)
    (tmp_path / "id.pub").write_text(f"{text_of(KEY)} someone@a-computer\n")
    assert load_public_key(tmp_path / "id.pub") == PublicKey(text_of(KEY), "someone@a-computer")


def test_pem_keys_of_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(KEY.private_bytes(PEM, PKCS8, OPEN))
    assert text_of(load_private_key(tmp_path / "key.pem")) == text_of(KEY)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "  \n"])
def test_how_a_public_key_ends(ending: str, tmp_path: Path) -> None:
    (tmp_path / "key.pub").write_bytes(f"{text_of(KEY)} North  Hospital{ending}".encode())
    assert load_public_key(tmp_path / "key.pub") == PublicKey(text_of(KEY), "North Hospital")


RSA, EC, X = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1()), x25519.X25519PrivateKey.generate()
SECRET = serialization.BestAvailableEncryption(b"password")
OPENSSH_PEM = KEY.private_bytes(PEM, SSH_PRIVATE, OPEN)
PKCS8_PEM = KEY.private_bytes(PEM, PKCS8, OPEN)

NOT_PRIVATE = {
    "empty": b"",
    "garbage": b"\x00\xff garbage",
    "text": "schlüssel".encode(),
    "public": text_of(KEY).encode(),
    "public in PEM": KEY.public_key().public_bytes(PEM, PEM_PUBLIC),
    "RSA": RSA.private_bytes(PEM, PKCS8, OPEN),
    "RSA of OpenSSH": RSA.private_bytes(PEM, SSH_PRIVATE, OPEN),
    "elliptic curve": EC.private_bytes(PEM, PKCS8, OPEN),
    "X25519": X.private_bytes(PEM, PKCS8, OPEN),
    "with a password": KEY.private_bytes(PEM, PKCS8, SECRET),
    "the seed alone": KEY.private_bytes(RAW, serialization.PrivateFormat.Raw, OPEN),
    "cut short": PKCS8_PEM[:-40],
    "OpenSSH cut short": OPENSSH_PEM[:-60],
    "OpenSSH with a changed letter": OPENSSH_PEM[:150] + (b"B" if OPENSSH_PEM[150:151] == b"A" else b"A") + OPENSSH_PEM[151:],
    "OpenSSH in name only": b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
    "a key after much else": b"\n" * 10_000 + PKCS8_PEM,
}
NOT_PUBLIC = {
    "empty": b"",
    "garbage": b"\x00\xff garbage",
    "text": "schlüssel".encode(),
    "kind alone": b"ssh-ed25519",
    "kind and garbage": b"ssh-ed25519 garbage north",
    "in PEM": KEY.public_key().public_bytes(PEM, PEM_PUBLIC),
    "RSA": RSA.public_key().public_bytes(OPENSSH, SSH_PUBLIC),
    "elliptic curve": EC.public_key().public_bytes(OPENSSH, SSH_PUBLIC),
    "RSA called Ed25519": b"ssh-ed25519 " + RSA.public_key().public_bytes(OPENSSH, SSH_PUBLIC).split()[1],
    "31 bytes": b"ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519" + b"\0\0\0\x1f" + b"a" * 31),
    "name is not text": text_of(KEY).encode() + b" \xff",
    "after another line": b"# the key of North\n" + text_of(KEY).encode(),
}


def told(raised: Any) -> str:
    """Everything that a traceback would show, causes included."""
    return "".join(traceback.format_exception(raised.value)) + repr(raised.value) + repr(raised.value.args)


def pieces(data: bytes) -> list[str]:
    """The file in pieces of 12 characters, which no message would hold by chance."""
    text = data.decode("latin-1")
    lines = [line for line in text.splitlines() if line and not line.startswith("-----")]
    return [line[i : i + 12] for line in lines for i in range(0, max(1, len(line) - 11), 6) if len(line[i : i + 12]) == 12]


@pytest.mark.parametrize("kind", list(NOT_PRIVATE))
def test_what_is_no_private_key(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "north"
    path.write_bytes(NOT_PRIVATE[kind])
    with pytest.raises(KeyFileError, match="not an Ed25519 private key without a password") as raised:
        load_private_key(path)
    assert str(path) in str(raised.value)
    assert not [piece for piece in pieces(NOT_PRIVATE[kind]) if piece in told(raised)]


@pytest.mark.parametrize("kind", list(NOT_PUBLIC))
def test_what_is_no_public_key(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "north.pub"
    path.write_bytes(NOT_PUBLIC[kind])
    with pytest.raises(KeyFileError, match="not an Ed25519 public key; expected one line") as raised:
        load_public_key(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("form", ["PEM", "OpenSSH", "RSA", "with a password"])
def test_a_private_key_given_for_a_public_one(form: str, tmp_path: Path) -> None:
    """The message names the mistake, and repeats nothing of the key."""
    forms = {"PEM": PKCS8_PEM, "OpenSSH": OPENSSH_PEM, "RSA": NOT_PRIVATE["RSA"], "with a password": NOT_PRIVATE["with a password"]}
    path = tmp_path / "north"
    path.write_bytes(forms[form])
    with pytest.raises(KeyFileError, match="is a private key; expected its public half") as raised:
        load_public_key(path)
    assert len(pieces(forms[form])) > 5
    assert not [piece for piece in pieces(forms[form]) if piece in told(raised)]


@pytest.mark.parametrize("load", [load_private_key, load_public_key])
def test_files_that_cannot_be_read(load: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match=r"none' cannot be read: No such file or directory\.$"):
        load(tmp_path / "none")
    with pytest.raises(KeyFileError, match=r"cannot be read: Is a directory\.$"):
        load(tmp_path)


def test_a_large_file_is_not_read_to_its_end() -> None:
    """/dev/zero has no end."""
    for load in (load_private_key, load_public_key):
        with pytest.raises(KeyFileError, match="not an Ed25519"):
            load(Path("/dev/zero"))


def test_a_file_of_two_keys_is_not_taken_for_one(tmp_path: Path) -> None:
    """Whoever lists two trusted keys in one file would trust the first alone."""
    (tmp_path / "keys.pub").write_text(f"{text_of(KEY)} north\n{text_of(OTHER_KEY)} south\n")
    with pytest.raises(KeyFileError):
        load_public_key(tmp_path / "keys.pub")


@pytest.mark.parametrize("name", ["\x1b[2Jnorth", "a" * 5000])
def test_a_name_in_a_file_can_be_printed(name: str, tmp_path: Path) -> None:
    (tmp_path / "key.pub").write_text(f"{text_of(KEY)} {name}\n")
    try:
        loaded = load_public_key(tmp_path / "key.pub")
    except KeyFileError:
        return
    assert loaded.name.isprintable()
    assert len(loaded.name) <= 200


# ---------------------------------------------------------------- signatures


def test_signatures_are_those_of_the_standard() -> None:
    signature = sign(Ed25519PrivateKey.from_private_bytes(SEED), MESSAGE)
    assert signature == Signature("ssh-ed25519 " + base64.b64encode(ssh_blob(PUBLIC)).decode(), base64.b64encode(SIGNATURE).decode())
    assert holds(signature, MESSAGE)


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_a_signature_holds_for_its_message_alone(message: bytes, other: bytes) -> None:
    signature = sign(KEY, message)
    assert holds(signature, message)
    assert holds(signature, other) == (message == other)
    assert not holds(Signature(text_of(OTHER_KEY), signature.value), message)


@given(st.integers(0, 511))
def test_no_changed_bit_goes_unnoticed(bit: int) -> None:
    good = sign(KEY, b"a")
    value = bytearray(base64.b64decode(good.value))
    value[bit // 8] ^= 1 << bit % 8
    assert not holds(Signature(good.key, base64.b64encode(value).decode()), b"a")
    key = bytearray(base64.b64decode(good.key.split()[1]))
    key[bit % len(key)] ^= 1
    assert not holds(Signature("ssh-ed25519 " + base64.b64encode(key).decode(), good.value), b"a")


GOOD = sign(KEY, b"a")
anything = st.one_of(
    st.text(max_size=300),
    st.binary(max_size=100).map(lambda raw: base64.b64encode(raw).decode()),
    st.binary(max_size=60).map(lambda raw: "ssh-ed25519 " + base64.b64encode(raw).decode()),
    st.binary(min_size=32, max_size=32).map(lambda raw: "ssh-ed25519 " + base64.b64encode(ssh_blob(raw)).decode()),
    st.sampled_from(["ssh-rsa AAAA", "ecdsa-sha2-nistp256 AAAA", "ssh-ed25519-cert-v01@openssh.com AAAA", "ssh-ed25519 ", "=" * 88]),
    st.just("\ud800"),
)


@given(anything, anything)
def test_garbage_does_not_hold_and_does_not_raise(key: str, value: str) -> None:
    assert holds(Signature(key, value), b"a") is False
    assert holds(Signature(key, GOOD.value), b"a") is False
    assert holds(Signature(GOOD.key, value), b"a") is False


def test_a_key_has_one_spelling() -> None:
    """Whether a key is trusted is found by comparing texts."""
    assert holds(GOOD, b"a")
    for key in (GOOD.key + " ", GOOD.key + "\n", GOOD.key + " north", " " + GOOD.key, GOOD.key.replace(" ", "\t")):
        assert not holds(Signature(key, GOOD.value), b"a")


def test_a_signature_is_plain_base_64() -> None:
    for value in (GOOD.value + "\n", " " + GOOD.value, GOOD.value.rstrip("="), GOOD.value[:40] + "\n" + GOOD.value[40:]):
        assert not holds(Signature(GOOD.key, value), b"a")


def test_a_signature_shows_nothing_of_its_private_key() -> None:
    seed = KEY.private_bytes(RAW, serialization.PrivateFormat.Raw, OPEN)
    shown = repr(GOOD) + repr(PublicKey(GOOD.key, "north"))
    for secret in (seed.hex(), base64.b64encode(seed).decode(), repr(seed)[2:-1]):
        assert secret[:12] not in shown


# ---------------------------------------------------------------- fingerprints


@given(st.binary(min_size=32, max_size=32))
def test_a_fingerprint_is_the_hash_of_the_key(public: bytes) -> None:
    expected = base64.b64encode(hashlib.sha256(ssh_blob(public)).digest()).decode().rstrip("=")
    text = "ssh-ed25519 " + base64.b64encode(ssh_blob(public)).decode()
    assert fingerprint(text) == fingerprint(text + " north") == PublicKey(text, "north").fingerprint == "SHA256:" + expected
    assert len(expected) == 43


def test_a_known_fingerprint() -> None:
    """As `ssh-keygen -l -f` of OpenSSH 9.2 showed it for the key of RFC 8032."""
    text = "ssh-ed25519 " + base64.b64encode(ssh_blob(PUBLIC)).decode()
    assert fingerprint(text) == "SHA256:F34nin7tcaYH6WR5LSWSfj6weFBPfBpuyUUoPFP9YjA"


@pytest.mark.parametrize("text", ["", "ssh-ed25519", "ssh-ed25519 ***", "ssh-ed25519 AAA", "schlüssel schlüssel"])
def test_a_fingerprint_of_garbage(text: str) -> None:
    assert fingerprint(text) == "not a key"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")
def test_openssh_agrees(tmp_path: Path) -> None:
    def keygen(*arguments: str) -> str:
        return subprocess.run(["ssh-keygen", *arguments], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout

    ours = make_key(tmp_path / "ours", "north")
    assert keygen("-l", "-f", str(tmp_path / "ours.pub")).split()[:3] == ["256", ours.fingerprint, "north"]
    keygen("-q", "-t", "ed25519", "-N", "", "-C", "south", "-f", str(tmp_path / "theirs"))
    theirs = load_public_key(tmp_path / "theirs.pub")
    assert theirs.name == "south"
    assert sign(load_private_key(tmp_path / "theirs"), b"").key == theirs.text
    assert keygen("-l", "-f", str(tmp_path / "theirs.pub")).split()[1] == theirs.fingerprint
    keygen("-q", "-t", "ed25519", "-N", "a password", "-f", str(tmp_path / "locked"))
    with pytest.raises(KeyFileError, match="without a password"):
        load_private_key(tmp_path / "locked")
