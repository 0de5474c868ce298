"""Another build beside the build under test: found, asked what it is, and started for real."""

import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import psutil
import pytest
from tables import each

from perfgate.campaign.builds.controls import build_behind
from perfgate.campaign.builds.other_build import (
    OtherBuild,
    other_build,
    parse_source,
    same_build,
    tools_under_test,
)
from perfgate.campaign.builds.started import source_of
from perfgate.campaign.fresh_start import StartSetup, fresh_start
from perfgate.campaign.injection import parse as parse_injection
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, InputError, MissingProgram
from perfgate.core.programs import AIPERF, LLAMA_CPP_PYTHON
from perfgate.core.verdict import Against
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import BuildOverride
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import EngineChoice, EngineSettings, Model, Scenario

SMOLLM2 = replace(
    building.SCENARIO,
    model=Model("SmolLM2-135M-Instruct", "q4_1"),
    engine=EngineChoice(
        "llama.cpp", EngineSettings(max_batch_size=4, max_seq_len=2048, cpu_threads=1)
    ),
    accuracy=(),
)
OLD = EngineBuild("llama.cpp", "1.0", "1.0")
PYTHON = """\
case "$*" in
  *--version) echo llama.cpp {version};;
  *gguf_tokenizer.py*) for last; do :; done; mkdir -p "$last"; echo {{}} > "$last/tokenizer.json";;
  *) exit 2;;
esac"""


Find = Callable[..., OtherBuild]


def session(tmp_path: Path, **changes: object) -> Session:
    made = Session(run=RunFolder(tmp_path), machine=building.MACHINE, launcher=LocalLauncher())
    return replace(made, **changes)


def executable(file: Path, text: str, mode: int = 0o755) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(mode)
    return file


def installed(folder: Path, version: str) -> Path:
    """A prefix whose interpreter says that its llama.cpp is of that version."""
    executable(folder / "bin/python", PYTHON.format(version=version))
    return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with version 2.0 to be tested, and 1.0 in a prefix, which is given."""
    tested = installed(tmp_path / "tested", "2.0")
    monkeypatch.setenv(LLAMA_CPP_PYTHON.variable, str(tested / "bin/python"))
    monkeypatch.setenv(AIPERF.variable, str(executable(tmp_path / "aiperf", "echo 0.13")))
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF and more")
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PERFGATE_MODEL_SMOLLM2_135M_INSTRUCT", str(model))
    return installed(tmp_path / "old", "1.0")


@pytest.fixture
def find(machine: Path, tmp_path: Path) -> Find:
    """Finds another build in a session of its own."""

    def found(source: BuildSource, expected: EngineBuild | None = None, **changes: Any) -> Any:
        return other_build(SMOLLM2, session(tmp_path, **changes), source, expected=expected)

    return found


class TestFound:
    def test_two_prefixes_are_two_builds_and_differ_in_nothing_else(
        self, machine: Path, tmp_path: Path, find: Find
    ) -> None:
        before = dict(os.environ)
        found = find(BuildSource(prefix=str(machine)))
        tested = tools_under_test(SMOLLM2, session(tmp_path))
        assert (found.tools.build, tested.build.version) == (OLD, "2.0")
        assert dict(os.environ) == before
        (probe, *_) = load_probes(SMOLLM2)
        cpu = {"cpu": "a"}
        assert found.tools.fingerprint(probe, cpu) == tested.fingerprint(probe, cpu)

    def test_a_program_that_is_named(self, machine: Path, find: Find) -> None:
        call = f"nice -n 5 {machine}/bin/python"
        found = find(BuildSource(programs={LLAMA_CPP_PYTHON.variable: call}))
        assert found.tools.build == OLD
        assert Path(found.tools.locations.find(LLAMA_CPP_PYTHON)[0]).name == "nice"

    def test_other_settings_of_the_build_under_test(self, find: Find) -> None:
        found = find(parse_source("engine.settings.cpu_threads=8"))
        assert found.tools.build.version == "2.0"
        assert [*map(str, found.injections)] == ["engine.settings.cpu_threads=8"]

    def test_what_a_person_says_of_the_build_under_test_is_not_said_of_another(
        self, machine: Path, find: Find
    ) -> None:
        found = find(BuildSource(prefix=str(machine)), override=BuildOverride(commit="abc1234"))
        assert found.tools.build == OLD

    def test_in_a_rehearsal_the_stand_ins_play_it(self, find: Find) -> None:
        source = parse_source("/no/such,engine.settings.cpu_threads=8")
        found = find(source, OLD, synthetic=True)
        assert (found.tools.build, len(found.injections)) == (OLD, 1)


class TestExpected:
    def test_the_baselines_build_has_the_commit_that_a_person_gave_it(
        self, machine: Path, find: Find
    ) -> None:
        expected = replace(OLD, commit="abc1234")
        assert find(BuildSource(prefix=str(machine)), expected).tools.build == expected

    def test_another_version_in_its_place_is_refused(self, machine: Path, find: Find) -> None:
        installed(machine, "3.0")
        with pytest.raises(InputError, match=r"found: .*/old is llama.cpp 3.0\n.*llama.cpp 1.0"):
            find(BuildSource(prefix=str(machine)), OLD)
        with pytest.raises(InputError, match="expected"):
            find(BuildSource(), OLD)  # settings of the build under test are no other version

    def test_a_build_of_the_same_version_that_took_its_place_is_refused(
        self, find: Find, tmp_path: Path
    ) -> None:
        newer = BuildOverride(commit="b" * 7)
        source = BuildSource(prefix=str(tmp_path / "tested"))
        expected = EngineBuild("llama.cpp", "2.0", "a" * 7)
        with pytest.raises(InputError, match="the build under test is in its place"):
            find(source, expected, override=newer)
        same = replace(expected, commit="b" * 7)
        assert find(source, same, override=newer).tools.build == same


class TestBadInput:
    @each(
        ("source", "told"),
        [
            (BuildSource(prefix="/no/such"), "no folder /no/such"),
            (BuildSource(image="a:1"), "--launcher local starts programs in no container"),
            (BuildSource(settings=("engine.settings.treads=1",)), "setting"),
            (BuildSource(settings=("engine.settings.tp=two",)), "setting"),
            (BuildSource(settings=("engine.settings.tp=2",)), "llama.cpp does not support this"),
            (
                BuildSource(programs={LLAMA_CPP_PYTHON.variable: "run --api-key ***"}),
                "a secret in it was not recorded",
            ),
        ],
    )
    def test_what_is_no_build(self, find: Find, source: BuildSource, told: str) -> None:
        with pytest.raises(InputError, match=told):
            find(source)

    def test_a_folder_that_is_no_installation_of_it(self, machine: Path, find: Find) -> None:
        with pytest.raises(InputError, match="has no folder bin"):
            find(BuildSource(prefix=str(machine / "bin")))
        python = machine / "bin/python"
        for made, told in (
            (
                lambda: executable(python, "echo no xllamacpp >&2; exit 1"),
                "run llama.cpp: no xllam",
            ),
            (lambda: python.chmod(0o644), "python is not executable"),
            (lambda: python.rename(python.with_name("sglang")), r"no python in .*/old/bin"),
        ):
            made()
            with pytest.raises(MissingProgram, match=told):
                find(BuildSource(prefix=str(machine)))


class TestSame:
    def test_the_same_program_and_settings(self, find: Find, tmp_path: Path) -> None:
        tested = find(BuildSource(prefix=str(tmp_path / "tested")))
        assert same_build(tested, find(BuildSource())).startswith("the same program")

    def test_the_same_version_elsewhere(self, machine: Path, find: Find, tmp_path: Path) -> None:
        again = find(BuildSource(prefix=str(installed(tmp_path / "again", "1.0"))))
        told = same_build(again, find(BuildSource(prefix=str(machine))))
        assert told == "both are llama.cpp 1.0, which may still be two builds"

    def test_another_version_or_other_settings(self, machine: Path, find: Find) -> None:
        old = BuildSource(prefix=str(machine))
        assert not same_build(find(old), find(BuildSource()))
        slowed = replace(old, settings=("engine.settings.cpu_threads=2",))
        assert not same_build(find(old), find(slowed))


class TestRecorded:
    def recorded(
        self, tmp_path: Path, facts: Mapping[str, Any] | None = None, *injected: str
    ) -> BuildSource:
        tools = tools_under_test(SMOLLM2, session(tmp_path))
        found = source_of(tools, facts or {}, [*map(parse_injection, injected)])
        assert found is not None
        return found

    def test_of_a_prefix_it_starts_the_same_build(self, find: Find, tmp_path: Path) -> None:
        source = self.recorded(tmp_path)
        assert source == BuildSource(prefix=str(tmp_path / "tested"))
        assert same_build(find(source), find(BuildSource()))

    def test_of_a_wrapper(
        self, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        call = f"{executable(tmp_path / 'my wrap', '')} '--with space'"
        monkeypatch.setenv(LLAMA_CPP_PYTHON.variable, call.replace("my wrap", "'my wrap'"))
        (words,) = self.recorded(tmp_path).programs.values()
        assert shlex.split(words) == [str(tmp_path / "my wrap"), "--with space"]

    def test_of_an_image_with_its_digest(self, machine: Path, tmp_path: Path) -> None:
        digest, name = "sha256:" + "cd" * 32, "nvcr.io/nvidia/tensorrt-llm/release"
        told = {"image": f"{name}:1.0", "id": "sha256:ab", "digests": [f"{name}@{digest}"]}
        found = self.recorded(tmp_path, {"docker": told})
        assert (found.image, found.digest, found.image_id) == (f"{name}:1.0", digest, "sha256:ab")
        assert found.image_to_start == f"{name}@{digest}"
        never_pushed = {"docker": {"image": "mine:dev", "id": "sha256:ab"}}
        assert self.recorded(tmp_path, never_pushed).image_to_start == "sha256:ab"

    def test_without_any_secret(
        self, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrapper = executable(tmp_path / "wrap", "")
        monkeypatch.setenv(LLAMA_CPP_PYTHON.variable, f"{wrapper} --api-key sesame")
        facts = {"docker": {"image": "https://ada:sesame@own/a:1"}}  # pragma: allowlist secret
        found = self.recorded(tmp_path, facts, "environment.HF_TOKEN=sesame")
        assert "***" in str(found)
        assert "sesame" not in str(found)

    def test_of_a_rehearsal_there_is_none(self, machine: Path, tmp_path: Path) -> None:
        tools = tools_under_test(SMOLLM2, session(tmp_path))
        assert source_of(tools, {}, synthetic=True) is None


class TestBehindABaseline:
    def behind(
        self, folder: Path, source: str | None, against: Against = "baseline", **changes: Any
    ) -> OtherBuild:
        recorded = None if source is None else BuildSource(prefix=source)
        known = building.baseline(engine=changes.pop("engine", OLD), source=recorded)
        return build_behind(SMOLLM2, session(folder, **changes), against, known)

    def test_it_is_started_as_it_was_recorded(self, machine: Path, tmp_path: Path) -> None:
        found = self.behind(tmp_path, str(machine))
        assert (found.tools.build, found.note) == (OLD, "")

    def test_a_baseline_that_does_not_say_how_has_none_but_a_person_can_name_it(
        self, machine: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(CannotDo, match=r"^the anchor does not say how its build was started$"):
            self.behind(tmp_path, None, "anchor")
        named = BuildSource(prefix=str(machine))
        assert self.behind(tmp_path, None, "baseline", control=named).tools.build == OLD
        assert self.behind(tmp_path, None, "anchor", control=named).tools.build == OLD

    def test_the_anchors_is_the_one_that_it_recorded(self, machine: Path, tmp_path: Path) -> None:
        named = BuildSource(prefix="/no/such")
        found = self.behind(tmp_path, str(machine), "anchor", control=named)
        assert found.tools.build == OLD
        with pytest.raises(CannotDo, match=r"^the build named by --control cannot be started"):
            self.behind(tmp_path, str(machine), control=named)

    def test_why_not_is_told_in_one_line(self, machine: Path, tmp_path: Path) -> None:
        with pytest.raises(CannotDo) as told:
            self.behind(tmp_path, "/gone")
        assert str(told.value) == (
            "the build that the baseline recorded cannot be started: the other build's prefix is "
            "no installation, found no folder /gone, expected a folder with bin/, e.g. a virtual "
            "environment"
        )

    def test_the_build_under_test_itself_is_told_as_such(
        self, machine: Path, tmp_path: Path
    ) -> None:
        tested, engine = str(tmp_path / "tested"), EngineBuild("llama.cpp", "2.0", "2.0")
        found = self.behind(tmp_path, tested, engine=engine)
        assert found.note.startswith("the control is the build under test: the same program")
        injected = (parse_injection("engine.settings.cpu_threads=8"),)
        assert not self.behind(tmp_path, tested, engine=engine, injections=injected).note


@pytest.mark.real
@pytest.mark.slow
def test_two_environments_serve_one_after_the_other_and_see_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp's own server, of a virtual environment made for this, then that of the session."""
    old = tmp_path / "old"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(old)], check=True)
    site = next(old.glob("lib/python*/site-packages"))
    (site / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "checkout-under-test"))
    made = session(tmp_path / "run")
    found = other_build(SMOLLM2, made, parse_source(str(old)))
    tested = OtherBuild(BuildSource(), tools_under_test(SMOLLM2, made), made.launcher)
    for build, prefix in ((found, old), (tested, Path(sys.prefix))):
        served = _served(build, SMOLLM2, tmp_path / "starts")
        assert served["argv"].startswith(f"{prefix}/bin/python")
        assert served["VIRTUAL_ENV"] == str(prefix)
        assert (served.get("PYTHONPATH") or "") == (
            "" if build is found else str(tmp_path / "checkout-under-test")
        )
        assert str(old) not in served["PATH"] or build is found


def _served(build: OtherBuild, scenario: Scenario, folder: Path) -> dict[str, str]:
    """The environment and first word of a server of this build, while it serves."""
    number = len([*folder.glob("*")]) + 1
    setup = StartSetup(build.launcher, folder / str(number), folder.parent / "cache", number)
    with fresh_start(scenario, build.tools, setup, load_probes(scenario)[:1]) as start:
        assert start.server is not None
        process = psutil.Process(start.server.pid)
        return {**process.environ(), "argv": process.cmdline()[0]}
