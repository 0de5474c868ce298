"""Session options: what the command line asks for, read when needed; a wrong option is told."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tables import each

from perfgate.campaign.campaigns import Campaigns
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.engines.base import engine
from perfgate.runs.run_folder import RunFolder
from perfgate.suite.session_options import SessionOptions

AB = ["A=this", "B=engine.settings.cpu_threads=8"]
H200 = "t.py::test_serving[h200-serve-c4]"
DEFAULTS = {
    "--rehearse": False,
    "--launcher": "local",
    "--self-reference": "auto",
    "--inject": [],
    "--control": "auto",
    "--shape": [],
}


def asked(deadline: float | None = None, **changes: Any) -> SessionOptions:
    """Options by their names, underscores for hyphens; all others are not given."""
    given = DEFAULTS | {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    return SessionOptions(given.get, deadline)


def campaigns(folder: Path, **options: Any) -> tuple[Path, Campaigns]:
    """Those of a run with these options, and the run's folder."""
    facts = {"started": "2026-11-22T00:00:00+00:00"}
    with closing(RunFolder.create(folder / "run", facts)) as run:
        return run.path, asked(**options).campaigns(run)


def test_the_time_begins_once_and_ends_for_a_worker_when_it_does_for_the_main_process() -> None:
    assert asked().budget is None
    session = asked(budget="1h")
    session.require_possible()
    assert session.budget is session.budget
    assert session.budget is not None
    there = asked(session.budget.deadline, budget="1h").budget
    assert there is not None
    assert there.deadline == session.budget.deadline


@each(
    ("options", "told"),
    [
        ({"ab": ["A=this", "C=this"]}, "--ab"),
        ({"ab": AB, "record": True}, "--record beside it"),
        ({"ab": AB, "inject": ["engine.settings.cpu_threads=1"]}, "--inject beside it"),
        ({"ab": AB, "control": "none"}, "--control beside it"),
        ({"control": "old"}, "^--control: this names no build"),
    ],
)
def test_what_cannot_be_had_is_told_before_any_work(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        asked(**options).require_possible()


def test_builds_are_named_by_their_settings_and_no_loss_of_two_is_waived(
    two_scenarios: Path,
) -> None:
    session = asked(ab=AB, scenarios=str(two_scenarios))
    session.require_possible()
    assert session.ab is not None
    assert session.ab.b.settings == ("engine.settings.cpu_threads=8",)
    assert session.waivers == ()
    assert asked().control is None
    named = asked(control="engine.settings.cpu_threads=2").control
    assert named is not None
    assert named.settings == ("engine.settings.cpu_threads=2",)


def test_files_are_read_when_they_are_needed(two_scenarios: Path) -> None:
    (two_scenarios / "h200.yaml").write_text("scenarios: none\n")
    session = asked(scenarios=two_scenarios)
    session.require_possible()
    with pytest.raises(SeveralInputErrors, match=r"h200\.yaml"):
        _ = session.scenarios


@pytest.mark.parametrize("rehearse", [False, True])
def test_a_file_of_waivers_must_be_right_and_lets_no_loss_of_a_rehearsal_through(
    two_scenarios: Path, rehearse: bool
) -> None:
    file = two_scenarios / "waivers.yaml"
    one = (
        "{scenario: s, metric: output_throughput, hardware: cpu, at_most: 0.03, reason: r, "
        "link: 'http://a', owner: o, last_day: 2027-01-01}"
    )
    file.write_text(f"schema_version: 1\nwaivers: [{one}]\n")
    assert len(asked(waivers=file, rehearse=rehearse).waivers) == int(not rehearse)
    file.write_text("schema_version: 1\nwaivers: none\n")
    with pytest.raises(SeveralInputErrors, match=r"waivers\.yaml:2"):
        asked(waivers=file, rehearse=rehearse).require_possible()


def test_a_rehearsal_waits_for_a_stand_in_as_long_as_one_needs() -> None:
    real, played = ({one.id: one for one in asked(rehearse=it).scenarios} for it in (False, True))
    shorter = {name for name, one in real.items() if played[name].limits != one.limits}
    assert shorter == {name for name, one in real.items() if engine[one.engine.name].is_rehearsed}
    assert {real[name].engine.name for name in shorter} == {"tensorrt-llm", "vllm", "sglang"}


def test_a_rehearsal_keeps_its_datasets_in_its_own_run(two_scenarios: Path, tmp_path: Path) -> None:
    run, found = campaigns(tmp_path, scenarios=two_scenarios, rehearse=True)
    assert found.session.synthetic
    assert run in found.session.cache.parents


def test_what_is_worth_a_look_is_told(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_MODLES", "/models")
    monkeypatch.setattr("perfgate.suite.session_options.shared_python", lambda: "shared")
    session = asked(scenarios=two_scenarios, engine_version="zzz")
    selected = session.named_by([H200, "t.py::test_else[c4]", "x"])
    assert {test: (one.scenario.id, one.label) for test, one in selected.items()} == {
        H200: ("h200-serve", "c4")
    }
    variable, shared = session.warnings(selected)
    assert "did you mean PERFGATE_MODELS?" in variable
    assert shared == "shared"
    rehearsed = asked(scenarios=two_scenarios, rehearse=True).warnings(selected)
    assert rehearsed == (variable,)


def test_the_site_says_how_gpus_and_the_cpu_are_shared(
    suite_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    site = "schema_version: 1\nshare_cpu: true\nwait_for_gpus_s: 0\n"
    (suite_root / "site.yaml").write_text(site)
    session = campaigns(tmp_path)[1].session
    assert session.pool is not None
    assert (session.pool.share_cpu, session.site.wait_for_gpus_s) == (True, 0)


def test_a_control_that_cannot_be_started_is_told_before_any_gpu_time(two_scenarios: Path) -> None:
    session = asked(scenarios=two_scenarios, control="/no/such")
    with pytest.raises(InputError, match=r"^--control: .*\n  found: no folder /no/such"):
        session.require_here(session.named_by([H200]))
