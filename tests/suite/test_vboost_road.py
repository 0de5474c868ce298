"""--vboost on the road: the slider is set before each start of the engine, and put back after it.

NVML and nvidia-smi are stand-ins, which tell of two B200; the second is the one that is chosen.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from made_smi import PROGRAM, Smi
from sessions import untraced
from test_road import PLUGINS, Finished, Suite, _wait_for, _wait_until, make_suite, suite

__all__ = ["suite"]

pytestmark = pytest.mark.slow

BEFORE = {"0": 0, "1": 2}
SET, PUT_BACK = "boost-slider -i 1 --vboost 4", "boost-slider -i 1 --vboost 2"
ACCURACY = "perf_tests/test_accuracy.py"
SPEED = "perf_tests/test_serving.py"


@dataclass
class BoostedSuite(Suite):
    """A checkout on a machine with two made GPUs."""

    @property
    def environment(self) -> dict[str, str]:
        inherited = super().environment
        made = str(Path(__file__).with_name("made_driver"))
        bin_folder = str(self.folder / "bin")
        return {
            **inherited,
            "PYTHONPATH": os.pathsep.join([made, inherited["PYTHONPATH"]]),
            "PATH": os.pathsep.join([bin_folder, inherited["PATH"]]),
            "MADE_SMI": str(self.folder / "smi"),
            "PERFGATE_PROGRAM_NVIDIA_SMI": shlex.join([sys.executable, str(PROGRAM)]),
            "CUDA_VISIBLE_DEVICES": "GPU-1",
        }

    @property
    def smi(self) -> Smi:
        smi = object.__new__(Smi)
        smi.folder = self.folder / "smi"
        return smi

    def set_and_put_back(self) -> list[tuple[str, int, bool]]:
        """Each setting of the slider: the call, servers started so far, whether one lives."""
        return [
            (" ".join(line["argv"]), line["started"], line["lives"]) for line in self.smi.settings
        ]


@pytest.fixture
def boosted(suite: Suite) -> BoostedSuite:
    return with_made_gpus(suite)


def with_made_gpus(suite: Suite) -> BoostedSuite:
    for name in ("smi", "bin"):
        (suite.folder / name).mkdir()
    Smi(suite.folder / "smi").set(levels=BEFORE)
    program = suite.folder / "bin" / "nvidia-smi"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(PROGRAM)])} "$@"\n')
    program.chmod(0o755)
    suite.edit(
        lambda text: text.replace(
            "{gpu: none, gpus: 0, nodes: 1}", "{gpu: B200, gpus: 1, nodes: 1}"
        )
    )
    return BoostedSuite(suite.folder)


@pytest.fixture(scope="module")
def at_level_4(tmp_path_factory: pytest.TempPathFactory) -> tuple[BoostedSuite, Finished]:
    """Speed of both roles, measured with the slider set: what two tests read."""
    made = with_made_gpus(make_suite(tmp_path_factory.mktemp("boosted")))
    return made, made.run(SPEED, "--vboost", "4")


def once_for_each(starts: int) -> list[tuple[str, int, bool]]:
    """Before the k-th start k-1 servers had been started, and none lived; after it k, and none."""
    calls = []
    for number in range(starts):
        calls += [(SET, number, False), (PUT_BACK, number + 1, False)]
    return calls


def test_each_start_of_both_roles_has_it_set_and_put_back(
    at_level_4: tuple[BoostedSuite, Finished],
) -> None:
    boosted, done = at_level_4
    assert done.status == 0, done.output
    assert {line["role"] for line in done.records("measurement")} == {"new", "reference"}
    starts = int((boosted.folder / "starts").read_text())
    assert starts >= 5
    assert boosted.set_and_put_back() == once_for_each(starts)
    assert boosted.smi.levels == BEFORE
    assert {line["fingerprint"]["vboost"] for line in done.records("measurement")} == {"4"}


def test_another_level_is_not_compared_silently(
    at_level_4: tuple[BoostedSuite, Finished], tmp_path: Path
) -> None:
    shutil.copytree(at_level_4[0].folder, tmp_path, dirs_exist_ok=True)
    done = BoostedSuite(tmp_path).run(SPEED, "--self-reference", "stored")
    assert set(done.verdicts.values()) == {"NOT_COMPARABLE"}, done.output
    assert "vboost: measured unknown, baseline 4" in done.output
    assert "vboost" not in done.records("measurement")[0]["fingerprint"]


def test_a_start_that_fails_has_it_put_back(boosted: BoostedSuite) -> None:
    done = boosted.run(ACCURACY, "--vboost", "4", fault="die-at-start")
    assert done.status == 11, done.output
    assert boosted.set_and_put_back() == once_for_each(1)


def test_without_the_right_nothing_is_started(boosted: BoostedSuite) -> None:
    boosted.smi.set(levels=BEFORE, refuse="permission")
    done = boosted.run(ACCURACY, "--vboost", "4")
    assert done.status == 11, done.output
    (error,) = [line["error"] for line in done.records("verdict")]
    assert error["class"] == "unfit_machine"
    assert "setting vboost is not permitted" in error["message"]
    assert not (boosted.folder / "starts").exists()


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["main", "worker"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_put_back_when_the_session_is_ended(
    boosted: BoostedSuite, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    session = subprocess.Popen(
        boosted.command(ACCURACY, "--vboost", "4", *workers),
        cwd=boosted.folder,
        env={**untraced(boosted.environment), "PERFGATE_STANDIN_FAULT": "never-ready"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(boosted.folder / "starts")
        assert boosted.smi.levels == {"0": 0, "1": 4}
        session.send_signal(number)
        status = session.wait(60)
    finally:
        session.kill()
        session.wait()
    if not workers:
        assert status == (-number if number == signal.SIGKILL else 2)
    _wait_until(lambda: boosted.smi.levels == BEFORE)
    assert boosted.wait_until_empty() == []
    calls = [call for call, *_ in boosted.set_and_put_back()]
    assert calls == [SET, PUT_BACK]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--vboost", "four"), "a whole number from 0"),
        (("--vboost", "4", "--rehearse"), "stand-ins play the engine"),
        (("--vboost", "4", "--launcher", "slurm"), "prolog"),
        (("--vboost", "4", "--launcher", "slurm", "-n", "1"), "prolog"),
    ],
)
def test_what_cannot_be_had_is_told_before_anything_is_started(
    boosted: BoostedSuite, options: tuple[str, ...], told: str
) -> None:
    done = boosted.run(ACCURACY, *options)
    assert done.status == 4, done.output
    assert told in done.output
    assert "Traceback" not in done.output
    assert not boosted.folder.joinpath("run").exists()


def test_made_up_gpus_never_reach_those_that_are_there(
    boosted: BoostedSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFGATE_FAKE_GPUS", "2")
    done = boosted.run(ACCURACY, "--vboost", "4")
    assert done.status == 4, done.output
    assert "simulated" in done.output
    assert boosted.smi.calls == []


def test_scenarios_without_a_gpu_are_measured_as_ever(boosted: BoostedSuite) -> None:
    boosted.edit(
        lambda text: text.replace(
            "{gpu: B200, gpus: 1, nodes: 1}", "{gpu: none, gpus: 0, nodes: 1}"
        )
    )
    done = boosted.run(ACCURACY, "--record", "--vboost", "4")
    assert done.status == 0, done.output
    assert boosted.smi.calls == []


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["main", "worker"])
def test_scenarios_on_other_nodes_are_told_before_anything_is_started(
    boosted: BoostedSuite, workers: tuple[str, ...]
) -> None:
    boosted.edit(
        lambda text: text.replace(
            "{gpu: B200, gpus: 1, nodes: 1}",
            "{gpu: B200, gpus: 2, nodes: 2}\n    launch: {by: mpirun}",
        ).replace("cpu_threads: 2", "cpu_threads: 2, tp: 2")
    )
    done = boosted.run(ACCURACY, "--vboost", "4", *workers)
    assert done.status == 4, done.output
    assert "standin-serve: started on other nodes" in done.output
    assert boosted.smi.calls == []
    assert not (boosted.folder / "starts").exists()


def test_a_run_is_resumed_with_its_own_level_and_tells_it(boosted: BoostedSuite) -> None:
    done = boosted.run(ACCURACY, "--vboost", "4")
    facts = json.loads((done.folder / "run.json").read_text())
    assert facts["vboost"] == 4
    assert "with vboost 4." in (done.folder / "summary.md").read_text()
    for options, status in (("--vboost", "3"), 4), ((), 4), (("--vboost", "4"), 0):
        again = subprocess.run(
            [sys.executable, "-m", "pytest", *PLUGINS, "-q", ACCURACY, "--record", *options]
            + [f"--resume={done.folder}"],
            cwd=boosted.folder,
            env=boosted.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert again.returncode == status, again.stdout + again.stderr
        if status:
            assert "the level of vboost differs from run" in again.stderr + again.stdout
