"""Keys: the Ed25519 keys that releases are signed with; nothing here prints a private one.

A private key lies in a PEM file (PKCS#8, not encrypted) that its owner alone may read; a public one
in a PEM file beside it (SubjectPublicKeyInfo), as `openssl pkey` and cosign read them.
"""

import base64
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import make_folder, sync_folder, write_errors_named
from perfgate.core.files.untrusted_files import (
    FileTooLarge,
    UntrustedFile,
    open_regular,
    read_input,
    user_name,
)
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

LARGEST_KEY = 16 * 2**10  # bytes: a PEM file of Ed25519 has some 120
_PRIME = 2**255 - 19  # of the field of Ed25519: RFC 8032, section 5.1
_Y_OF_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
# The eight points whose order divides 8 have these coordinates y; each has one or two signs of x.
_SMALL_ORDER = frozenset({0, 1, _PRIME - 1, _Y_OF_ORDER_8, _PRIME - _Y_OF_ORDER_8})
Key = TypeVar("Key", Ed25519PrivateKey, Ed25519PublicKey)


def make_keys(path: Path) -> Ed25519PublicKey:
    """Write a new private key into `path`, and its public one into `path` with ``.pub`` behind it.

    Raises:
        InputError: one of the two is there already.
        RunError: one cannot be written (class ``disk_full`` or ``unwritable``).
    """
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = {path: (private, 0o600), public_path(path): (pem(key.public_key()), 0o644)}
    for file in files:
        if os.path.lexists(file):
            raise InputError(
                "there is a file already, and no key is ever overwritten",
                file=file,
                field="--output",
                expected="a name that is free, with .pub behind it too",
            )
    with write_errors_named(path):
        make_folder(path.parent)
        for file, (content, mode) in files.items():
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(handle, "wb") as new:
                new.write(content)
                new.flush()
                os.fsync(new.fileno())
        sync_folder(path.parent)
    return key.public_key()


def public_path(path: Path) -> Path:
    """Where the public key of a private one's file lies."""
    return path.with_name(f"{path.name}.pub")


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The private key of a file that a person named.

    Raises:
        ReleaseRefused: status KEY: it is a link or no regular file, of another user, others may
            read it, or it holds no private key of Ed25519 that can be read without a passphrase.
        InputError: no such file, or it cannot be read.
    """
    with _read_errors_named(path, "a private key"), open_regular(path) as file:
        _require_own(path, os.fstat(file.fileno()))
        content = file.read(LARGEST_KEY + 1)
    what = "the private key's file, which has no .pub at its end"
    return _loaded(path, lambda: load_pem_private_key(content, None), Ed25519PrivateKey, what)  # type: ignore[type-abstract]


def read_public_key(path: Path) -> Ed25519PublicKey:
    """The public key of a file that a person named.

    Raises:
        ReleaseRefused: status KEY: it holds a private key, no public one of Ed25519, or one of
            small order.
        InputError: no such file, or it cannot be read.
    """
    with _read_errors_named(path, "a public key"):
        content = read_input(path, LARGEST_KEY, "key")
    what = "the public key's file, which ends in .pub"
    key = _loaded(path, lambda: load_pem_public_key(content), Ed25519PublicKey, what)  # type: ignore[type-abstract]
    return _of_large_order(key, file=path)


def public_key_of(text: str) -> Ed25519PublicKey:
    """The public key that a policy names.

    Args:
        text: base64 of its 32 bytes, as the schema of policies has it.

    Raises:
        ReleaseRefused: status KEY: it has small order.
    """
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(text))
    return _of_large_order(key, field="signers", found=text)


def pem(key: Ed25519PublicKey) -> bytes:
    """A public key as PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def as_policy_has_it(key: Ed25519PublicKey) -> str:
    """The base64 that stands under `signers` in a policy."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def key_id(key: Ed25519PublicKey) -> str:
    """The name of a key: the SHA-256 of its 32 bytes, 64 hexadecimal digits."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def is_signed(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    """Whether a signature is of this message by this key."""
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _of_large_order(key: Ed25519PublicKey, **fields: Any) -> Ed25519PublicKey:
    """The key, unless its 32 bytes, canonical or not, encode a point of small order."""
    y = int.from_bytes(key.public_bytes_raw(), "little") & (2**255 - 1)  # without the sign of x
    if y % _PRIME in _SMALL_ORDER:
        raise ReleaseStatus.KEY.refusal("small_order", **fields)
    return key


@contextmanager
def _read_errors_named(path: Path, expected: str) -> Iterator[None]:
    try:
        yield
    except (UntrustedFile, FileTooLarge) as error:
        raise ReleaseRefused(ReleaseStatus.KEY, **error.arguments) from error
    except FileNotFoundError:
        hint = "perfgate release keygen --output KEY makes one"
        raise InputError("no such file", file=path, expected=expected, hint=hint) from None
    except OSError as error:
        raise InputError("cannot be read", file=path, found=error.strerror) from error


def _require_own(path: Path, status: os.stat_result) -> None:
    """Check that a file can be that of a private key, and is its user's alone."""
    if status.st_uid != os.geteuid():
        owner = f"it belongs to {user_name(status.st_uid)}"
        raise ReleaseStatus.KEY.refusal("of_another_user", file=path, found=owner)
    if status.st_size > LARGEST_KEY:
        raise ReleaseStatus.KEY.refusal("large_file", file=path, limit=LARGEST_KEY)
    if (mode := stat.S_IMODE(status.st_mode)) & 0o077:
        raise ReleaseStatus.KEY.refusal("readable", file=path, found=f"mode {mode:04o}")


def _loaded(path: Path, load: Callable[[], object], kind: type[Key], what: str) -> Key:
    try:
        if isinstance(key := load(), kind):
            return key
        found = f"a key of another kind: {type(key).__name__.strip('_')}"
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        found = str(error)
    raise ReleaseStatus.KEY.refusal("no_key", file=path, found=found, what=what)
