"""Session options: what the command line asks for, read when needed and repeated to run again."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tables import each

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.engines.base import engine
from perfgate.machine.preflight import Check
from perfgate.runs.run_folder import RunFolder
from perfgate.suite.session_options import SessionOptions, shaping_options

AB = ["A=this", "B=engine.settings.cpu_threads=8"]
H200 = "t.py::test_serving[h200-serve-c4]"
DEFAULTS = {"rehearse": False, "launcher": "local", "inject": [], "shape": []}
DEFAULTS |= dict.fromkeys(("self_reference", "control"), "auto")


def options(**given: Any) -> dict[str, Any]:
    """Options by their names, underscores for hyphens; all others are not given."""
    return {f"--{name.replace('_', '-')}": value for name, value in (DEFAULTS | given).items()}


def asked(deadline: float | None = None, **given: Any) -> SessionOptions:
    return SessionOptions(options(**given).get, deadline)


def test_the_time_begins_once_and_ends_for_a_worker_when_it_does_for_the_main_process() -> None:
    assert asked().budget is None
    session = asked(budget="1h")
    session.require_possible()
    assert session.budget is session.budget
    there = asked(session.budget.deadline, budget="1h")
    assert there.budget.deadline == session.budget.deadline


@each(
    ("given", "told"),
    [
        ({"ab": ["A=this", "C=this"]}, "--ab"),
        ({"ab": AB, "record": True}, "--record beside it"),
        ({"ab": AB, "inject": ["engine.settings.cpu_threads=1"]}, "--inject beside it"),
        ({"ab": AB, "control": "none"}, "--control beside it"),
        ({"control": "old"}, "^--control: this names no build"),
    ],
)
def test_what_cannot_be_had_is_told_before_any_work(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        asked(**given).require_possible()


def test_waivers_must_be_right_and_count_for_no_rehearsal_or_ab(two_scenarios: Path) -> None:
    file = two_scenarios / "waivers.yaml"
    one = (
        "{scenario: s, metric: output_throughput, hardware: cpu, at_most: 0.03, reason: r, "
        "link: 'http://a', owner: o, last_day: 2027-01-01}"
    )
    file.write_text(f"schema_version: 1\nwaivers: [{one}]\n")
    counts = [len(asked(waivers=file, **more).waivers) for more in ({}, {"rehearse": True})]
    assert (counts, asked(ab=AB, scenarios=two_scenarios).waivers) == ([1, 0], ())
    file.write_text("schema_version: 1\nwaivers: none\n")
    for rehearse in (False, True):
        with pytest.raises(SeveralInputErrors, match=r"waivers\.yaml:2"):
            asked(waivers=file, rehearse=rehearse).require_possible()


def test_a_rehearsal_waits_for_a_stand_in_as_long_as_one_needs() -> None:
    real, played = ({one.id: one for one in asked(rehearse=it).scenarios} for it in (False, True))
    shorter = {name for name, one in real.items() if played[name].limits != one.limits}
    assert shorter == {name for name, one in real.items() if engine[one.engine.name].is_rehearsed}
    assert {real[name].engine.name for name in shorter} == {"tensorrt-llm", "vllm", "sglang"}


def test_what_is_worth_a_look_is_told(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_MODLES", "/models")
    own = Check("own environment", "warning", "shared")
    monkeypatch.setattr("perfgate.suite.session_options.own_environment", lambda: own)
    session = asked(scenarios=two_scenarios, engine_version="zzz")
    selected = session.named_by([H200, "t.py::test_else[c4]", "x"])
    assert {test: (one.scenario.id, one.label) for test, one in selected.items()} == {
        H200: ("h200-serve", "c4")
    }
    variable, shared = session.warnings(selected)
    assert ("did you mean PERFGATE_MODELS?" in variable, shared) == (True, "shared")
    assert asked(scenarios=two_scenarios, rehearse=True).warnings(selected) == (variable,)


def test_the_site_says_what_is_shared_and_a_rehearsal_keeps_datasets_in_its_run(
    suite_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    site = "schema_version: 1\nshare_cpu: true\nwait_for_gpus_s: 0\n"
    (suite_root / "site.yaml").write_text(site)
    with closing(RunFolder.create(tmp_path / "run", {"started": "2026-11-22"})) as run:
        session = asked().campaigns(run).session
        rehearsed = asked(rehearse=True).campaigns(run).session
    assert (session.pool.share_cpu, session.site.wait_for_gpus_s) == (True, 0)
    assert (rehearsed.synthetic, run.path in rehearsed.cache.parents) == (True, True)


def test_a_control_that_cannot_be_started_is_told_before_any_gpu_time(two_scenarios: Path) -> None:
    session = asked(scenarios=two_scenarios, control="/no/such")
    with pytest.raises(InputError, match=r"^--control: .*\n  found: no folder /no/such"):
        session.require_here(session.named_by([H200]))


@each(
    ("given", "repeated"),
    [
        ({}, []),
        ({"gate": True, "run_dir": Path("r"), "resume": Path("r"), "budget": "4h"}, []),
        ({"launcher": "slurm", "rehearse": True}, ["--launcher=slurm", "--rehearse"]),
        ({"rehearse_fault": "slow:8%"}, ["--rehearse-fault=slow:8%"]),
        ({"engine_repo": Path("clones of mine")}, ["--engine-repo=clones of mine"]),
        # A name that another plugin has is repeated by its long name.
        ({"shape": ["1024/2048", "8/8"]}, ["--perfgate-shape=1024/2048", "--perfgate-shape=8/8"]),
        ({"ab": AB}, ["--perfgate-ab", *AB]),
    ],
)
def test_all_that_shapes_a_number_and_was_given_is_repeated(
    given: dict[str, Any], repeated: list[str]
) -> None:
    taken = {"--ab": "--perfgate-ab", "--shape": "--perfgate-shape"}
    words = shaping_options(options(**given).get, lambda name: taken.get(name, name))
    assert sorted(words) == sorted(repeated)
