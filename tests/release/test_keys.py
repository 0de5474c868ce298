"""Keys of releases: made, read, refused."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from refusals import refused
from tables import each

from perfgate.release import keys
from perfgate.release.release_status import ReleaseStatus


def write(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def refusal(given: Any, read: Any = keys.read_private_key) -> str:
    error = refused(read, given)
    assert error.status == ReleaseStatus.KEY
    return str(error)


def test_made_keys_are_read_again_and_none_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "new" / "release.key"
    public = keys.make_keys(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    read = (
        keys.read_private_key(path).public_key(),
        keys.read_public_key(keys.public_path(path)),
        keys.public_key_of(keys.as_policy_has_it(public)),
    )
    assert {keys.key_id(one) for one in read} == {keys.key_id(public)}
    before = path.read_bytes()
    path_beside = tmp_path / "other.key"
    keys.public_path(path_beside).write_text("mine")
    for taken in (path, path_beside):
        refused(keys.make_keys, taken, match="no key is ever overwritten")
    assert path.read_bytes() == before
    assert not path_beside.exists()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    keys.make_keys(tmp_path / "release.key")
    return tmp_path / "release.key"


def test_a_key_that_is_not_its_users_alone_is_refused(path, monkeypatch) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    assert "a symbolic link" in refusal(link)
    for mode in (0o640, 0o604):
        path.chmod(mode)
        told = refusal(path)
        assert f"mode {mode:04o}" in told
        assert f"chmod 600 {path}" in told
    path.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "another user's file" in refusal(path)


def test_each_kind_of_key_only_where_it_belongs(path: Path) -> None:
    public = keys.public_path(path)
    public.chmod(0o600)
    assert "expected: the private key's file" in refusal(public)
    told = refusal(path, keys.read_public_key)
    assert "expected: the public key's file" in told
    assert path.read_text().splitlines()[1] not in told


def test_keys_of_another_kind_encrypted_large_and_damaged_are_refused(path: Path) -> None:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    plain, locked = serialization.NoEncryption(), serialization.BestAvailableEncryption(b"x")
    other, own = ec.generate_private_key(ec.SECP256R1()), Ed25519PrivateKey.generate()
    whole = path.read_bytes()
    for told, content in {
        "a key of another kind": other.private_bytes(*form, plain),
        "without a passphrase": own.private_bytes(*form, locked),
        "expected: the private key's file": whole[:60],
        "too large for a key": whole + b"x" * keys.LARGEST_KEY,
    }.items():
        assert told in refusal(write(path, content))


PRIME = 2**255 - 19
Y_OF_ORDER_8 = int("7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7", 16)


@each("sign", [0, 1])
@each("y", [0, 1, PRIME - 1, PRIME, PRIME + 1, Y_OF_ORDER_8, PRIME - Y_OF_ORDER_8])
def test_a_public_key_of_small_order_is_refused(tmp_path, y, sign) -> None:
    weak = Ed25519PublicKey.from_public_bytes((y | sign << 255).to_bytes(32, "little"))
    path = write(tmp_path / "weak.pub", keys.pem(weak))
    in_policy = keys.as_policy_has_it(weak)
    for read, given in ((keys.read_public_key, path), (keys.public_key_of, in_policy)):
        assert "small order" in refusal(given, read)
