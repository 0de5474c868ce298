"""Ownership: who else could have written a file that was found, not named. By stat(2) alone.

What perfgate believes may start programs as the user. Access control lists are not looked at.
"""

import os
import re
import stat
from pathlib import Path

_ROOT = 0


def doubt(path: Path) -> str | None:
    """Why what `path` names could be another user's work; None: it could not, or is not there.

    It should belong to the effective user, to root, or, for root by way of sudo, to who called
    sudo; and nobody else should be able to write to it. Write permission of a group is none of
    somebody else's where that is the owner's private group, as an umask of 002 expects.
    """
    try:
        named = path.lstat()
        if stat.S_ISLNK(named.st_mode):
            if named.st_uid not in _trusted():
                return f"the link belongs to {user_name(named.st_uid)}"
            named = path.stat()
    except OSError:
        return None
    if named.st_uid not in _trusted():
        return f"it belongs to {user_name(named.st_uid)}"
    mode = stat.S_IMODE(named.st_mode)
    if mode & stat.S_IWOTH:
        return f"everybody may write to it (mode {mode:04o})"
    if mode & stat.S_IWGRP and not _is_private(named.st_gid, named.st_uid):
        return f"{_group_name(named.st_gid)} may write to it (mode {mode:04o})"
    return None


def keeps_its_entries(folder: Path) -> bool:
    """Whether nobody else can replace what this user has in `folder`: it is sticky, as /tmp is."""
    try:
        seen = folder.stat()
    except OSError:
        return False
    return seen.st_uid in _trusted() and bool(seen.st_mode & stat.S_ISVTX)


def user_name(uid: int) -> str:
    """A user for messages: ``ada (uid 1000)``."""
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _trusted() -> set[int]:
    user = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if user == _ROOT else ""
    return {_ROOT, user, *([int(caller)] if re.fullmatch(r"[0-9]{1,10}", caller) else [])}


def _is_private(gid: int, owner: int) -> bool:
    """Whether nobody but the owner is in the group; where it has no name, by its number."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(gid)
        user = pwd.getpwuid(owner)
    except KeyError:
        return gid in (owner, _ROOT)
    return group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}


def _group_name(gid: int) -> str:
    import grp

    try:
        return f"the group {grp.getgrgid(gid).gr_name} (gid {gid})"
    except KeyError:
        return f"the group {gid}"
