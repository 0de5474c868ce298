"""The place of a start is looked at, here or on its nodes, and what was found is written down."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import building
import pytest
from plain_records import recorded

from perfgate.campaign import preflight_check as preflighting
from perfgate.campaign.builds.started import StartedBuild
from perfgate.campaign.preflight_check import PlaceCheck, look_at
from perfgate.campaign.schedule import StartRole
from perfgate.campaign.session import Session
from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.core.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.judging.assembly.references import References
from perfgate.judging.rules.performance import Rule
from perfgate.launchers.local.launcher import LocalLauncher, LocalPlacement
from perfgate.machine.hardware import Machine
from perfgate.machine.leases import Lease
from perfgate.machine.preflight import Check, PreflightReport
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.scenario import Launch

WELL = Check("ports", "ok", "28,000 free")
FULL = Check("run folder", "failed", "0.1 GiB free", hint="choose another folder with --run-dir")
H200 = building.machine("NVIDIA H200", "NVIDIA H200")


class Nodes(LocalPlacement):
    """Nodes whose doctor says what it is told to."""

    def __init__(self, *checks: Check, machine: Machine = H200) -> None:
        super().__init__(lambda *_: pytest.fail("nothing is started"))
        self._told: dict[str, Any] = {
            "machine": asdict(machine),
            "checks": [asdict(check) for check in checks],
            "observed": {"driver": "570.1"},
        }

    def doctor(self) -> Mapping[str, Json]:
        return self._told


@pytest.fixture
def session(tmp_path: Path) -> Session:
    run = RunFolder.create(tmp_path / "run", {})
    return Session(run, building.MACHINE, LocalLauncher(), Rule())


TOOLS = Toolchain(building.SCENARIO, engine=None)  # type: ignore[arg-type]
FOLDER = Path("start-1")


def test_what_nodes_say_of_themselves_is_taken_as_it_is(session: Session) -> None:
    looked = look_at(Nodes(WELL), TOOLS, session, Lease(), FOLDER)
    assert looked.machine == H200
    assert looked.report == PreflightReport((WELL,), {"driver": "570.1"})
    (record,) = recorded(session.run, "preflight")
    assert (record["scenario"], record["fit"]) == ("small-serve", True)
    assert record["machine"]["gpus"][0]["name"] == "NVIDIA H200"
    assert record["checks"] == [asdict(WELL)]


def test_an_unfit_place_is_refused_after_it_was_written_down(session: Session) -> None:
    with pytest.raises(RunError, match="node7 is not fit for small-serve: run folder") as caught:
        look_at(Nodes(WELL, FULL), TOOLS, session, Lease(), FOLDER)
    assert caught.value.failure == "unfit_machine"
    assert "--run-dir" in caught.value.hint
    (record,) = recorded(session.run, "preflight")
    assert record["fit"] is False


def test_this_machine_is_looked_at_where_no_node_says_anything(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def look(*given: Any) -> PreflightReport:
        asked.extend(given)
        return PreflightReport((WELL,))

    monkeypatch.setattr(preflighting, "look", look)
    here = LocalPlacement(lambda *_: pytest.fail("nothing is started"))
    looked = look_at(here, TOOLS, session, Lease(), FOLDER)
    assert looked.machine is building.MACHINE
    *_, machine, where = asked
    assert machine is building.MACHINE
    assert (where.run_folder, where.leased, where.runtime) == (session.run.path, None, "none")


class TestRanks:
    """They are tried last, and written down whatever becomes of them."""

    @pytest.fixture
    def tools(self) -> Toolchain:
        scenario = replace(building.SCENARIO, launch=Launch("mpirun"))
        return Toolchain(scenario, engine=TensorRTLLM())

    def test_that_answer_are_a_check_of_the_place(
        self, session: Session, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answered = Check("ranks", "ok", "4 of 4 ranks")
        asked: list[Any] = []

        def check(*given: Any) -> Check:
            asked.extend(given)
            return answered

        monkeypatch.setattr(preflighting, "check_ranks", check)
        looked = look_at(Nodes(WELL), tools, session, Lease(), FOLDER)
        assert looked.report.checks == (WELL, answered)
        assert asked[-2:] == [TENSORRT_LLM_PYTHON, FOLDER / "ranks"]
        (record,) = recorded(session.run, "preflight")
        assert record["checks"][-1] == asdict(answered)

    def test_that_do_not_are_written_down_and_refused_with_their_own_class(
        self, session: Session, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def check(*_: Any) -> Check:
            raise RunError("pmi_mismatch", "each of 4 ranks takes itself for the only one")

        monkeypatch.setattr(preflighting, "check_ranks", check)
        with pytest.raises(RunError) as caught:
            look_at(Nodes(WELL), tools, session, Lease(), FOLDER)
        assert caught.value.failure == "pmi_mismatch"
        (record,) = recorded(session.run, "preflight")
        assert record["fit"] is False
        assert record["checks"][-1]["found"].startswith("pmi_mismatch: each of 4 ranks")

    def test_are_not_started_on_a_machine_that_is_unfit(
        self, session: Session, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(preflighting, "check_ranks", lambda *_: pytest.fail("started"))
        with pytest.raises(RunError, match="not fit"):
            look_at(Nodes(WELL, FULL), tools, session, Lease(), FOLDER)


# The places of one campaign


def build_of(role: StartRole, session: Session) -> StartedBuild:
    return StartedBuild(role, building.SCENARIO, TOOLS, session)


def checked() -> tuple[PlaceCheck, list[Machine]]:
    """A check, and the machines that references were told of."""
    told: list[Machine] = []
    references = SimpleNamespace(measured_on=told.append)
    return PlaceCheck(cast(References, references)), told


def test_a_place_here_is_looked_at_once_for_each_build(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Toolchain] = []
    result = preflighting.PreflightResult(H200, PreflightReport((WELL,), {}))
    monkeypatch.setattr(
        preflighting, "look_at", lambda _place, tools, *_: looks.append(tools) or result
    )
    check, told = checked()
    roles: tuple[StartRole, ...] = ("new", "reference", "baseline_control", "new")
    for role in (*roles, "baseline_control", "anchor_control"):
        check.look(build_of(role, session), Lease(), FOLDER, Nodes(WELL))
    assert len(looks) == 3
    assert told == [H200]


def test_a_control_on_another_kind_of_machine_is_refused(session: Session) -> None:
    check, _ = checked()
    check.look(build_of("new", session), Lease(), FOLDER, Nodes(WELL))
    like = Nodes(WELL, machine=replace(H200, host="node8"))
    check.look(build_of("baseline_control", session), Lease(), FOLDER, like)
    other = Nodes(WELL, machine=replace(H200, host="node9", cpu="Xeon"))
    with pytest.raises(RunError, match=r"node9 is not of .*: cpu Xeon, not Grace"):
        check.look(build_of("anchor_control", session), Lease(), FOLDER, other)
