"""What a killed verification leaves."""

import os
import signal
import tempfile
import time
from pathlib import Path

import made_packs

from perfgate.release import verification
from perfgate.release.pack_archive import open_pack


def test_what_a_killed_process_unpacked_goes_at_the_next_call(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pack = open_pack(made_packs.write(tmp_path / "evidence.tar"))
    links, others = tmp_path / "perfgate-release-link", tmp_path / "other"
    others.mkdir()
    links.symlink_to(others)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with verification._unpacked(pack) as folder:
            os.write(writing, os.fsencode(folder))
            time.sleep(600)
    left = Path(os.fsdecode(os.read(reading, 4096)))
    os.utime(left, (0, 0))
    with verification._unpacked(pack) as folder:
        assert left.exists()  # its process lives
        assert (folder / "policy/release.yaml").is_file()
    assert not folder.exists()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with verification._unpacked(pack):
        assert not left.exists()
    assert others.exists()
