"""Session options: what the command line asks for, read when needed; a wrong option is told."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.engines.base import engine
from perfgate.runs.records import RunFolder
from perfgate.suite.session_options import SessionOptions

AB = ["A=this", "B=engine.settings.cpu_threads=8"]
DEFAULTS = {
    "--rehearse": False,
    "--launcher": "local",
    "--self-reference": "auto",
    "--inject": [],
    "--control": "auto",
    "--shape": [],
}


def asked(deadline: str | None = None, **changes: Any) -> SessionOptions:
    """Options by their names, underscores for hyphens; all others are not given."""
    given = DEFAULTS | {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    return SessionOptions(given.get, deadline)


def test_the_time_of_a_worker_ends_when_that_of_the_main_process_does() -> None:
    assert asked().budget is None
    here = asked(budget="1h").budget
    assert here is not None
    there = asked(repr(here.deadline), budget="1h").budget
    assert there is not None
    assert there.deadline == here.deadline


def test_the_time_begins_once() -> None:
    session = asked(budget="1h")
    assert session.budget is session.budget


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"budget": "soon"}, "--budget"),
        ({"ab": ["A=this", "C=this"]}, "--ab"),
        ({"ab": AB, "record": True}, "--record beside it"),
        ({"ab": AB, "inject": ["engine.settings.cpu_threads=1"]}, "--inject beside it"),
        ({"ab": AB, "control": "none"}, "--control beside it"),
    ],
)
def test_what_cannot_be_had_is_told_before_any_work(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        asked(**options).require_possible()


def test_two_builds_are_compared_and_no_loss_is_waived(two_scenarios: Path) -> None:
    session = asked(ab=AB, scenarios=str(two_scenarios))
    session.require_possible()
    assert session.ab is not None
    assert session.ab.b.settings == ("engine.settings.cpu_threads=8",)
    assert session.waivers == ()


def test_what_can_be_had_is_let_through() -> None:
    asked(budget="1h").require_possible()


def test_tests_are_known_by_their_ids(two_scenarios: Path) -> None:
    session = asked(scenarios=two_scenarios)
    found = session.named_by(["t.py::test_serving[h200-serve-c4]", "t.py::test_else[c4]", "x"])
    assert {test: (one.scenario.id, one.label) for test, one in found.items()} == {
        "t.py::test_serving[h200-serve-c4]": ("h200-serve", "c4")
    }


def test_files_are_read_when_they_are_needed(two_scenarios: Path) -> None:
    (two_scenarios / "h200.yaml").write_text("scenarios: none\n")
    session = asked(scenarios=two_scenarios)
    session.require_possible()
    with pytest.raises(SeveralInputErrors, match=r"h200\.yaml"):
        _ = session.scenarios


def test_a_rehearsal_lets_no_loss_through(two_scenarios: Path) -> None:
    file = two_scenarios / "waivers.yaml"
    one = (
        "{scenario: s, metric: output_throughput, hardware: cpu, at_most: 0.03, reason: r, "
        "link: 'http://a', owner: o, last_day: 2027-01-01}"
    )
    file.write_text(f"schema_version: 1\nwaivers: [{one}]\n")
    assert asked(waivers=file).waivers
    assert asked(waivers=file, rehearse=True).waivers == ()


@pytest.mark.parametrize("rehearse", [False, True])
def test_a_file_of_waivers_must_be_there_and_right(two_scenarios: Path, rehearse: bool) -> None:
    with pytest.raises(SeveralInputErrors, match=r"none\.yaml"):
        asked(waivers=two_scenarios / "none.yaml", rehearse=rehearse).require_possible()
    file = two_scenarios / "waivers.yaml"
    file.write_text("schema_version: 1\nwaivers: none\n")
    with pytest.raises(SeveralInputErrors, match=r"waivers\.yaml:2"):
        asked(waivers=file, rehearse=rehearse).require_possible()


def test_a_rehearsal_waits_for_a_stand_in_as_long_as_one_needs() -> None:
    real, played = ({one.id: one for one in asked(rehearse=it).scenarios} for it in (False, True))
    shorter = {name for name, one in real.items() if played[name].limits != one.limits}
    assert shorter == {name for name, one in real.items() if engine[one.engine.name].is_rehearsed}
    assert {real[name].engine.name for name in shorter} == {"tensorrt-llm", "vllm", "sglang"}
    assert shorter


def a_run(tmp_path: Path) -> "closing[RunFolder]":
    return closing(RunFolder.create(tmp_path / "run", {"started": "2026-11-22T00:00:00+00:00"}))


@pytest.mark.parametrize("rehearse", [False, True])
def test_a_suite_is_what_the_options_say(
    two_scenarios: Path, tmp_path: Path, rehearse: bool
) -> None:
    injected = ["engine.settings.cpu_threads=1"]
    session = asked(scenarios=two_scenarios, rehearse=rehearse, inject=injected)
    with a_run(tmp_path) as run:
        campaigns = session.campaigns(run)
    assert [str(one) for one in campaigns.session.injections] == injected
    assert campaigns.session.synthetic is rehearse
    assert (run.path in campaigns.session.cache.parents) is rehearse


def test_a_wrong_injection_is_told(two_scenarios: Path, tmp_path: Path) -> None:
    session = asked(scenarios=two_scenarios, inject=["nonsense"])
    with a_run(tmp_path) as run, pytest.raises(InputError, match="KEY=VALUE"):
        session.campaigns(run)


def test_what_is_worth_a_look_is_told(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_MODLES", "/models")
    monkeypatch.setattr("perfgate.suite.session_options.shared_python", lambda: "shared")
    session = asked(scenarios=two_scenarios, engine_version="zzz")
    selected = session.named_by(["t.py::test_serving[h200-serve-c4]"])
    variable, shared = session.warnings(selected)
    assert "did you mean PERFGATE_MODELS?" in variable
    assert shared == "shared"
    rehearsed = asked(scenarios=two_scenarios, rehearse=True).warnings(selected)
    assert rehearsed == (variable,)


def test_the_release_is_one_of_the_engines_under_test() -> None:
    selected = asked().named_by(["t.py::test_x[b200-r1-fp4-fp16kv-max-throughput-c3072]"])
    assert selected
    (told,) = asked(engine_version="99", rehearse=True).warnings(selected)
    assert "TensorRT-LLM 99" in told
    with pytest.raises(InputError, match="not a version"):
        asked(engine_version="zzz").warnings(selected)


def test_a_wrong_site_is_told_before_any_work(
    suite_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    (suite_root / "site.yaml").write_text("schema_version: 1\nslurm: {partiton: x}\n")
    with pytest.raises(SeveralInputErrors, match="did you mean partition"):
        asked().require_possible()


def test_the_site_says_how_gpus_and_the_cpu_are_shared(
    suite_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    (suite_root / "site.yaml").write_text(
        "schema_version: 1\nshare_cpu: true\nwait_for_gpus_s: 0\n"
    )
    with a_run(tmp_path) as run:
        session = asked().campaigns(run).session
    assert session.pool is not None
    assert (session.pool.share_cpu, session.site.wait_for_gpus_s) == (True, 0)


class TestControl:
    def test_is_the_baselines_unless_it_is_named(self) -> None:
        assert asked().control is None
        named = asked(control="engine.settings.cpu_threads=2").control
        assert named is not None
        assert named.settings == ("engine.settings.cpu_threads=2",)

    def test_that_names_no_build_is_told_before_any_work(self) -> None:
        with pytest.raises(InputError, match=r"^--control: this names no build"):
            asked(control="old").require_possible()

    @pytest.mark.parametrize(
        ("control", "told"),
        [
            ("/no/such", r"^--control: .*\n  found: no folder /no/such"),
            ("nvcr.io/a/b:1", "--launcher local starts programs in no container"),
            ("engine.settings.treads=2", r"^--control: no such setting"),
        ],
    )
    def test_that_cannot_be_started_is_told_before_any_gpu_time(
        self, two_scenarios: Path, control: str, told: str
    ) -> None:
        session = asked(scenarios=two_scenarios, control=control)
        selected = session.named_by(["t.py::test_serving[h200-serve-c4]"])
        with pytest.raises(InputError, match=told):
            session.require_here(selected)
