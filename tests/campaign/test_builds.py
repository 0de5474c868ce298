"""Builds: how a person names settings and builds, nothing guessed; another build beside the one
under test: found, asked what it is, recorded.
"""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import pytest
from refusals import refused
from tables import each

from perfgate.baselines.baseline import BuildSource
from perfgate.campaign.builds.build import (
    Build,
    other_build,
    same_build,
    source_of,
    tools_under_test,
)
from perfgate.campaign.builds.controls import baseline_build
from perfgate.campaign.builds.words import inject, parse_ab, parse_injection, parse_source
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, MissingProgram
from perfgate.core.programs.programs import AIPERF, LLAMA_CPP_PYTHON
from perfgate.core.verdict import Against
from perfgate.engines.base import EngineBuild
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import BuildOverride
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import AccuracyTask, EngineChoice, EngineSettings, Model

# Settings. ----------------------------------------------------------------------------------------


@each(
    "text, value",
    [
        ("engine.settings.cpu_threads=1", 1),
        ("accuracy.temperature=1.5", 1.5),
        ("accuracy.temperature=2", 2),
        ("workload.streaming=false", False),
        ("title=a=b", "a=b"),
        ("title='7'", "7"),
        ("engine.settings.cpu_threads=", None),
    ],
)
def test_one_setting_is_changed_and_nothing_else(text, value) -> None:
    injection = parse_injection(text)
    assert (".".join(injection.path), type(injection.value)) == (text.split("=")[0], type(value))
    before, now = building.SCENARIO, inject(building.SCENARIO, (injection,))
    for name in injection.path[:-1]:
        before, now = (getattr(one, name) for one in (before, now))
    if isinstance(now, tuple):
        (before,), (now,) = before, now
    (last,) = injection.path[-1:]
    assert (getattr(now, last), replace(now, **{last: getattr(before, last)})) == (value, before)


def test_several_settings_are_all_changed_in_every_task() -> None:
    gsm8k = AccuracyTask("lm_eval", "gsm8k", 8)
    two = replace(building.SCENARIO, accuracy=(*building.SCENARIO.accuracy, gsm8k))
    words = ("workload.isl=8", "accuracy.temperature=2", "workload.isl=7")
    changed: Any = inject(two, tuple(map(parse_injection, words)))
    assert changed.workload.isl == 7
    assert [(one.task, one.temperature) for one in changed.accuracy] == [("sums", 2), ("gsm8k", 2)]


@each(
    "text",
    ["", "=", "=1", "cpu_threads", "title=[1", "title=a: b: c", "t=@", "environment={A: b}"]
    + ["workload.isl=010", "title=2020-99-99", "title=&a [*a]"]
    + [f"workload.isl={value}" for value in ("[" * 900, "1" * 900, "[" * 50_000, "- " * 50_000)],
    ids=lambda text: text[:20],
)
def test_what_is_no_setting_is_refused(text) -> None:
    error = refused(parse_injection, text, match="--inject: not a setting")
    assert error.found == repr(text[:1000])


@each(
    "text, expected",
    [
        ("engine.settings.cpu_thread=1", "after engine.settings one of tp, pp, ep, "),
        ("environment.OMP_NUM_THREADS=1", "after environment one of nothing"),
        ("..=1", "after the start one of id, "),
        ("engine.settings.cpu_threads=1.5", "int or null"),
        ("engine.settings.attention_dp=1", "true or false or null"),
        ("engine.settings.mtp=1", "one of its own settings or null"),
        ("workload.api=grpc", "'completions' or 'chat'"),
        ("workload.concurrency=4", "one of its own settings"),
        ("accuracy.temperature=hot", "float"),
    ],
)
def test_no_setting_of_the_scenario_or_of_another_type(text, expected) -> None:
    problem = "no such setting" if expected.startswith("after") else "not a value of this setting"
    setting = (parse_injection(text),)
    error = refused(inject, building.SCENARIO, setting, match=f"--inject: {problem}")
    assert str(error.expected).startswith(expected)
    assert str(error.found).startswith(text.rstrip("="))


def test_what_is_recorded_of_a_setting_has_no_secret() -> None:
    shown = [str(parse_injection(f"{name}=https://a:b@c")) for name in ("environment.TOKEN", "id")]
    assert shown == ["environment.TOKEN=***", "id=https://***@c"]


# Builds in words. ---------------------------------------------------------------------------------

DIGEST = "sha256:" + "cd" * 32
IMAGES = ["nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc1", "own:5000/a/b:1", "old.sqsh"]
IMAGES += ["docker://me@nvcr.io#nvidia/tensorrt-llm/release:1.2", "/images/old.sqsh"]
SERVE, TP = "PERFGATE_PROGRAM_TRTLLM_SERVE", "engine.settings.tp"
CALL = {SERVE: "nice trtllm-serve"}
IN_IT = BuildSource("a:1", "", "", "/opt/in/it", CALL, (f"{TP}=2",))


@each(
    "text, source",
    [
        *((image, BuildSource(image)) for image in IMAGES),
        (f"a/b@{DIGEST}", BuildSource(f"a/b@{DIGEST}", digest=DIGEST)),
        (DIGEST, BuildSource(DIGEST, image_id=DIGEST)),
        ("/opt/old", BuildSource(prefix="/opt/old")),
        ("~/old", BuildSource(prefix=str(Path.home() / "old"))),
        ("./old", BuildSource(prefix=str(Path.cwd() / "old"))),
        ("./old.sqsh", BuildSource(str(Path.cwd() / "old.sqsh"))),
        (f"a:1, /opt/in/it ,{SERVE}={CALL[SERVE]},{TP}=2", IN_IT),
        ("this", BuildSource()),
        ("this,engine.settings.tp=1", BuildSource(settings=("engine.settings.tp=1",))),
        ("engine.settings.tp=1", BuildSource(settings=("engine.settings.tp=1",))),
    ],
)
def test_words_name_a_build_and_it_is_shown_in_words_that_name_it(text, source) -> None:
    assert parse_source(text) == source
    assert parse_source(source.description) == source


@each(
    "text, told",
    [
        ("a:1,", "a part is empty"),
        ("old", r"a folder or an image[^§]*\./old for a folder, old:TAG"),
        ("a b:1", "a folder or an image"),
        ("a/" * 1900 + "!", "a folder or an image"),
        (f"a@{DIGEST[:-1]}", "64 digits"),
        ("a:1,b:2", "image is given twice"),
        ("a:1,./b", "the folder is in the image"),
        ("this,/opt/a", "names two builds"),
        ("tp=1", r"KEY=VALUE, e\.g\."),
        ("engine.settings.tp={", "not a setting"),
        ("PERFGATE_PROGRAM_TRTLLM_SERV=/a", "did you mean PERFGATE_PROGRAM_TRTLLM_SERVE"),
        ("PERFGATE_PROGRAM_AIPERF=/a", "measured by the same client"),
        ("PERFGATE_PROGRAM_TRTLLM_SERVE", "CALL"),
        ("/opt/a\x1b[2J", "one line of printable text"),
    ],
)
def test_what_names_no_build_or_could_be_two_is_refused(text, told) -> None:
    refused(parse_source, text, field="--control", match=told)


@each("words", ["A=this A=this", "A=this C=this", "A= B=this", "this B=this", "A=this B=nonsense"])
def test_an_ab_needs_two_builds_in_any_order(words) -> None:
    told = "--ab B" if "nonsense" in words else "an A/B needs two builds"
    refused(parse_ab, words.split(), match=told)
    found = parse_ab(["B=engine.settings.tp=8", "A=this"])
    assert found.description == "A=this B=engine.settings.tp=8"


# Another build, found here. -----------------------------------------------------------------------

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
Find = Callable[..., Build]


def session(tmp_path: Path, **changes: object) -> Session:
    made = Session(run=RunFolder(tmp_path), machine=building.MACHINE, launcher=LocalLauncher())
    return replace(made, **changes)


def executable(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
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


def test_two_prefixes_are_two_builds_and_differ_in_nothing_else(machine, tmp_path, find) -> None:
    before = dict(os.environ)
    found = find(BuildSource(prefix=str(machine)), override=BuildOverride(commit="abc1234"))
    tested = tools_under_test(SMOLLM2, session(tmp_path))
    assert (found.tools.build, tested.build.version) == (OLD, "2.0")
    assert dict(os.environ) == before
    facts = (load_probes(SMOLLM2)[0], {"cpu": "a"})
    assert found.tools.fingerprint(*facts) == tested.fingerprint(*facts)


def test_a_program_that_is_named_or_only_settings_or_a_rehearsal(machine, find) -> None:
    call = f"nice -n 5 {machine}/bin/python"
    found = find(BuildSource(programs={LLAMA_CPP_PYTHON.variable: call}))
    assert found.tools.build == OLD
    assert Path(found.tools.locations.find(LLAMA_CPP_PYTHON)[0]).name == "nice"
    found = find(parse_source("engine.settings.cpu_threads=8"))
    assert found.tools.build.version == "2.0"
    assert [*map(str, found.injections)] == ["engine.settings.cpu_threads=8"]
    found = find(parse_source("/no/such,engine.settings.cpu_threads=8"), OLD, synthetic=True)
    assert (found.tools.build, len(found.injections)) == (OLD, 1)


def test_it_must_be_the_build_that_is_expected(machine, find, tmp_path) -> None:
    old, known = BuildSource(prefix=str(machine)), replace(OLD, commit="abc1234")
    assert find(old, known).tools.build == known, "the commit that a person gave it"
    installed(machine, "3.0")
    refused(find, old, OLD, match=r"found: .*/old is llama.cpp 3.0\n.*llama.cpp 1.0")
    # Settings of the build under test are no other version.
    refused(find, BuildSource(), OLD, match="expected")
    newer, tested = BuildOverride(commit="b" * 7), BuildSource(prefix=str(tmp_path / "tested"))
    expected = EngineBuild("llama.cpp", "2.0", "a" * 7)
    refused(find, tested, expected, override=newer, match="build under test is in its place")
    same = replace(expected, commit="b" * 7)
    assert find(tested, same, override=newer).tools.build == same


MASKED = BuildSource(programs={LLAMA_CPP_PYTHON.variable: "run --api-key ***"})


@each(
    "source, told",
    [
        (BuildSource(prefix="/no/such"), "no folder /no/such"),
        (BuildSource(prefix="/usr/bin"), "has no folder bin"),
        (BuildSource(image="a:1"), "--launcher local starts programs in no container"),
        (BuildSource(settings=("engine.settings.treads=1",)), "setting"),
        (BuildSource(settings=("engine.settings.tp=2",)), "llama.cpp does not support this"),
        (MASKED, "a secret in it was not recorded"),
    ],
)
def test_what_is_no_build(find, source, told) -> None:
    refused(find, source, match=told)


def test_a_folder_that_is_no_installation_of_it(machine, find) -> None:
    python = machine / "bin/python"
    for made, told in (
        (lambda: executable(python, "echo no xllamacpp >&2; exit 1"), "run llama.cpp: no xllam"),
        (lambda: python.chmod(0o644), "python is not executable"),
        (lambda: python.rename(python.with_name("sglang")), r"no python in .*/old/bin"),
    ):
        made()
        refused(find, BuildSource(prefix=str(machine)), match=told, error=MissingProgram)


def test_whether_two_are_the_same_build(machine, find, tmp_path) -> None:
    old, this = BuildSource(prefix=str(machine)), find(BuildSource())
    tested = find(BuildSource(prefix=str(tmp_path / "tested")))
    assert same_build(tested, this) == "the same program and settings"
    again = find(BuildSource(prefix=str(installed(tmp_path / "again", "1.0"))))
    told = "both are llama.cpp 1.0, which may still be two builds"
    assert same_build(again, find(old)) == told
    slowed = find(replace(old, settings=("engine.settings.cpu_threads=2",)))
    assert (same_build(find(old), this), same_build(find(old), slowed)) == ("", "")


def recorded(tmp_path: Path, facts: Mapping[str, Any], *injected: str) -> Any:
    """How the build under test is recorded."""
    made = session(tmp_path)
    tools = tools_under_test(SMOLLM2, made)
    build = Build(SMOLLM2, tools, made.launcher, tuple(map(parse_injection, injected)))
    return source_of(build, facts)


def test_the_record_of_an_image_has_its_digest(machine, tmp_path) -> None:
    name = "nvcr.io/nvidia/tensorrt-llm/release"
    told = {"image": f"{name}:1.0", "id": "sha256:ab", "digests": [f"{name}@{DIGEST}"]}
    found = recorded(tmp_path, {"docker": told})
    assert (found.image, found.digest, found.image_id) == (f"{name}:1.0", DIGEST, "sha256:ab")
    assert found.image_to_start == f"{name}@{DIGEST}"
    never_pushed = {"docker": {"image": "mine:dev", "id": "sha256:ab"}}
    assert recorded(tmp_path, never_pushed).image_to_start == "sha256:ab"


def test_the_record_of_a_call_has_its_words_without_any_secret(
    machine, tmp_path, monkeypatch
) -> None:
    wrapper = executable(tmp_path / "my wrap", "")
    monkeypatch.setenv(LLAMA_CPP_PYTHON.variable, f"'{wrapper}' '--with space' --api-key sesame")
    facts = {"docker": {"image": "https://ada:sesame@own/a:1"}}  # pragma: allowlist secret
    found = recorded(tmp_path, facts, "environment.HF_TOKEN=sesame")
    (words,) = found.programs.values()
    assert shlex.split(words) == [str(wrapper), "--with space", "--api-key", "***"]
    assert "sesame" not in str(found)


def behind(
    folder: Path, source: str | None, against: Against = "baseline", **changes: Any
) -> Build:
    """The build behind a baseline that recorded this prefix."""
    known = building.baseline(
        engine=changes.pop("engine", OLD), source=source and BuildSource(prefix=source)
    )
    return baseline_build(SMOLLM2, session(folder, **changes), against, known)


def test_a_baselines_build_is_as_recorded_or_as_a_person_names_it(machine, tmp_path) -> None:
    found = behind(tmp_path, str(machine))
    assert (found.tools.build, found.note) == (OLD, "")
    told = r"^the anchor does not say how its build was started$"
    refused(behind, tmp_path, None, "anchor", match=told, error=CannotDo)
    named, wrong = BuildSource(prefix=str(machine)), BuildSource(prefix="/no/such")
    for against in ("baseline", "anchor"):
        assert behind(tmp_path, None, against, control=named).tools.build == OLD
    assert behind(tmp_path, str(machine), "anchor", control=wrong).tools.build == OLD
    told = r"^the build named by --control cannot be started"
    refused(behind, tmp_path, str(machine), control=wrong, match=told, error=CannotDo)
    assert str(refused(behind, tmp_path, "/gone", error=CannotDo)) == (
        "the build that the baseline recorded cannot be started: the other build's prefix is "
        "no installation, found no folder /gone, expected a folder with bin/, e.g. a virtual "
        "environment"
    )


def test_the_build_under_test_itself_is_told_as_such(machine, tmp_path) -> None:
    tested, engine = str(tmp_path / "tested"), EngineBuild("llama.cpp", "2.0", "2.0")
    found = behind(tmp_path, tested, engine=engine)
    assert found.note.startswith("the control is the build under test: the same program")
    injected = (parse_injection("engine.settings.cpu_threads=8"),)
    assert not behind(tmp_path, tested, engine=engine, injections=injected).note
