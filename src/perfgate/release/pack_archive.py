"""Pack archive: the heads of the entries of an evidence pack, as POSIX tar has them. Pure.

They are written here and not by `tarfile`, whose bytes differ between releases of Python. One path,
size and time give one head: no owner, no rights but 0644 (0755 of a script), no device, no link. So
a reader holds what it found against what would have been written, and no byte is without meaning.

Source of the form: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block".
"""

BLOCK = 512
END = bytes(2 * BLOCK)
LARGEST_FILE = 8**11 - 1  # bytes: 11 octal digits
_NAME_BYTES = 100
_PAX_NAME = b"././@PaxHeader"


def entry_head(path: str, size: int, time: int) -> bytes:
    """What stands before the content of a file in the archive: one block, or three for a long path.

    Args:
        path: in the pack.
        size: of the content, bytes, at most `LARGEST_FILE`.
        time: of the last change, seconds since 1970, not before it.
    """
    mode = 0o755 if path.endswith(".sh") else 0o644
    name = path.encode("ascii", errors="replace")
    if path.isascii() and len(name) <= _NAME_BYTES:
        return _block(name, mode, size, time, b"0")
    record = _pax_record(path)
    return (
        _block(_PAX_NAME, 0o644, len(record), time, b"x")
        + record
        + padding(len(record))
        + _block(name[:_NAME_BYTES], mode, size, time, b"0")
    )


def padding(size: int) -> bytes:
    """The zeros that fill the last block of a content of `size` bytes."""
    return bytes(-size % BLOCK)


def pax_path(record: bytes) -> str | None:
    """The path that the record of a long path names; None: it is not of `entry_head`."""
    try:
        path = record.decode().partition(" path=")[2].removesuffix("\n")
    except UnicodeDecodeError:
        return None
    return path if _pax_record(path) == record else None


def _pax_record(path: str) -> bytes:
    """``<length of all of this> path=<path>``."""
    rest = b" path=" + path.encode(errors="surrogateescape") + b"\n"
    length = len(rest)
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return str(length).encode() + rest


def _block(name: bytes, mode: int, size: int, time: int, kind: bytes) -> bytes:
    fields = [
        name.ljust(_NAME_BYTES, b"\0"),
        b"%07o\0" % mode,
        b"%07o\0" % 0,  # user
        b"%07o\0" % 0,  # group
        b"%011o\0" % size,
        b"%011o\0" % time,
        b" " * 8,  # the checksum, which is of the block with blanks here
        kind,
        bytes(100),  # of a link
        b"ustar\x0000",
        bytes(64),  # names of user and group
        b"%07o\0" % 0,  # device
        b"%07o\0" % 0,
        bytes(155 + 12),
    ]
    block = b"".join(fields)
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]
