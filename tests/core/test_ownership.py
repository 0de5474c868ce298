"""Who else could have written a file: owners, modes, links. Only root can give files away."""

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest
from tables import each

from perfgate.core import untrusted_files
from perfgate.core.untrusted_files import doubt

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "site.yaml"
    path.touch(0o644)
    return path


def test_ones_own_is_beyond_doubt(file: Path) -> None:
    file.chmod(0o644)
    assert doubt(file) is None
    assert doubt(file.parent) is None
    assert doubt(file.with_name("missing")) is None


@pytest.mark.parametrize("mode", [0o646, 0o666, 0o777, 0o1777])
def test_what_everybody_may_write_to(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert doubt(file) == f"everybody may write to it (mode {mode:04o})"


@only_root
def test_another_users(file: Path) -> None:
    os.chown(file, NOBODY, NOBODY)
    assert "belongs to" in str(doubt(file))
    assert f"uid {NOBODY}" in str(doubt(file))


@only_root
def test_roots_is_believed_by_all(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_files.os, "geteuid", lambda: 1234)
    assert doubt(file) is None


@only_root
def test_the_caller_of_sudo_is_believed_by_root_alone(file: Path, monkeypatch) -> None:
    os.chown(file, 1234, 1234)
    monkeypatch.setenv("SUDO_UID", "1234")
    assert doubt(file) is None
    monkeypatch.setenv("SUDO_UID", "²" * 5000)
    assert doubt(file) is not None
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setattr(untrusted_files.os, "geteuid", lambda: 4321)
    assert doubt(file) is not None


@only_root
def test_a_link_is_its_makers_wherever_it_leads(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    assert doubt(link) is None
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert "the link belongs to" in str(doubt(link))
    os.chown(link, 0, 0, follow_symlinks=False)
    os.chown(file, NOBODY, NOBODY)
    assert "it belongs to" in str(doubt(link))


class TestGroups:
    """Modes of an umask of 002; the groups are made up."""

    @pytest.fixture(autouse=True)
    def shared_file(self, file: Path) -> None:
        file.chmod(0o664)

    def names(
        self, monkeypatch: pytest.MonkeyPatch, group: str | None, *members: str, user: str = "ada"
    ) -> None:
        def of_group(gid: int) -> SimpleNamespace:
            if group is None:
                raise KeyError(gid)
            return SimpleNamespace(gr_name=group, gr_mem=list(members))

        monkeypatch.setattr(grp, "getgrgid", of_group)
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=user))

    @each(
        ("group", "members", "said"),
        [
            ("ada", (), None),
            ("ada", ("ada",), None),
            ("ada", ("ada", "grace"), "the group ada"),  # a guest
            ("perf", (), "the group perf"),
        ],
    )
    def test_the_owners_private_group_or_a_teams(self, file, monkeypatch, group, members, said):
        self.names(monkeypatch, group, *members)
        why = doubt(file)
        assert why is None if said is None else said in why and "write to it (mode 0664)" in why

    @only_root
    def test_numbers_without_names_as_in_a_container(self, file: Path, monkeypatch) -> None:
        self.names(monkeypatch, None)
        monkeypatch.setattr(untrusted_files.os, "geteuid", lambda: 1234)
        for gid, is_private in ((1234, True), (0, True), (100, False)):
            os.chown(file, 1234, gid)
            assert (doubt(file) is None) is is_private
