"""Pack names: which paths the files of an evidence pack may have, on any system. Pure.

A name comes from a pack that anybody may have made, or from what programs left in a run folder.
"""

import unicodedata
from collections.abc import Iterable

LONGEST_PATH = (
    1024  # bytes of UTF-8; PATH_MAX of Linux is 4096, with the folder it is unpacked into
)
LONGEST_PART = 255  # bytes of UTF-8: NAME_MAX of nearly every file system

_NOT_SHOWN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def problem_of_name(path: str) -> str | None:
    """What is wrong with the path of a file in a pack; None: nothing."""
    parts = path.split("/")
    if path.startswith("/"):
        return "an absolute path"
    if ".." in parts or "." in parts:
        return "a path that leaves its folder"
    if "" in parts:
        return "a path with an empty part"
    if "\\" in path:
        return "a path with a backslash"
    if any(unicodedata.category(one) in _NOT_SHOWN for one in path):
        return "a path with a character that cannot be seen, or is no Unicode"
    if unicodedata.normalize("NFC", path) != path:
        return "a path that is not in the composed form of Unicode (NFC)"
    if len(path.encode()) > LONGEST_PATH:
        return f"a path longer than {LONGEST_PATH} bytes"
    if max(len(one.encode()) for one in parts) > LONGEST_PART:
        return f"a path with a part longer than {LONGEST_PART} bytes"
    return None


def colliding_names(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two paths of a pack that some file system takes for one, or of which one lies in the other.

    Names that differ in case, or in their form of Unicode, are one file on Windows and macOS.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            other = folders.setdefault(_folded(folder), folder)
            if other != folder:
                return other, folder
        if _folded(path) in files:
            return files[_folded(path)], path
        files[_folded(path)] = path
    for folded, path in files.items():
        if folded in folders:
            return path, folders[folded] + "/"
    return None


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
