"""Verdicts of real sessions, computed anew from what their programs wrote; and what was changed."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from registered_standins import registered_standins
from test_gate_road import SERVING, SLOWER, promoted, stored, waive  # noqa: F401
from test_road import Suite, copied, suite  # noqa: F401

from perfgate.gate.verdict import Verdict
from perfgate.release.recomputation import Recomputed, recompute_run
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.scenarios.files import load_scenarios

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _standins() -> Iterator[None]:
    """The stand-ins' parsers, which the sessions load as a plugin."""
    with registered_standins():
        yield


def recomputed(checkout: Suite, run: Path) -> dict[str, Recomputed]:
    scenarios = load_scenarios(checkout.folder / "scenarios" / "standin.yaml")
    found = {one.test: one for one in recompute_run(run, scenarios)}
    assert found
    return found


def faults(found: dict[str, Recomputed]) -> list[str]:
    return [told for one in found.values() for told in one.differences]


BBB = ("--engine-commit", "bbb", "--engine-version", "1.0")


def test_a_regression_and_one_that_a_waiver_lets_through(stored: Suite) -> None:  # noqa: F811
    words = ("perf_tests/test_serving.py", "-k", "c1", *BBB, *SLOWER)
    for is_waived, verdict in ((False, Verdict.REGRESSION), (True, Verdict.PASS)):
        if is_waived:
            waive(stored, 0.9, f"{date.today().year + 1}-01-31")
        done = stored.run(*words)
        found = recomputed(stored, done.folder)
        assert faults(found) == []
        assert {one.verdict for one in found.values()} == {verdict}, done.output
    waived = [line["judgements"][0]["waiver"] for line in done.records("verdict")]
    assert {one["owner"] for one in waived} == {"Ada"}


def test_speed_against_the_machine_itself(suite: Suite) -> None:  # noqa: F811
    sessions = []
    for number in (1, 2):
        run = suite.folder / f"run-{number}"
        words = ("--engine-commit", "aaa", "--self-reference", "fresh", "--run-dir", str(run))
        done = replace(suite.run("perf_tests/test_serving.py", "-k", "c1", *words), folder=run)
        found = recomputed(suite, run)
        assert faults(found) == []
        assert {one.test for one in found.values() if one.verdict} == {"standin-serve-c1"}
        own = {
            one["run"]
            for line in done.records("verdict")
            for one in (line["basis"]["earlier"] or {"runs": []})["runs"]
        }
        # What the machine measured of itself in this session is no earlier session's.
        assert json.loads((run / "run.json").read_text())["id"] not in own
        sessions.append(len(own))
    assert sessions[1] == sessions[0] + 1


Change = Callable[[Path], None]


def rewritten(file: str, change: Callable[[str], str]) -> Change:
    def run(folder: Path) -> None:
        (path,) = folder.glob(file)
        before = path.read_text()
        assert change(before) != before
        path.write_text(change(before))

    return run


@pytest.fixture(scope="module")
def measured(
    promoted: Suite,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Suite, Path]:
    checkout = copied(promoted, tmp_path_factory.mktemp("measured"))
    done = checkout.run(*SERVING, *BBB)
    assert done.status == 0, done.output
    return checkout, done.folder


def test_points_and_their_curve_against_a_baseline(measured: tuple[Suite, Path]) -> None:
    checkout, run = measured
    found = recomputed(checkout, run)
    assert faults(found) == []
    assert {name.removeprefix("standin-serve-") for name in found} == {
        *("c1", "c2", "c3", "c4", "sweep")
    }
    for one in found.values():
        assert one.verdict == one.recorded == Verdict.PASS
        assert one.metrics == 1
    assert (run / "references/1/cpu/standin-serve/aaa.json").is_file()


PLANTED: Sequence[tuple[str, Change, str]] = (
    (
        "a client's file",
        rewritten(
            "standin-serve/start-1-new/c2/result.json",
            lambda text: json.dumps({**json.loads(text), "output_throughput": 12345.0}),
        ),
        "standin-serve/start-1-new/c2: output_throughput: ",
    ),
    (
        "a reading of perfgate's own",
        rewritten(
            "standin-serve/start-1-new/c1/server_cpu.json",
            lambda text: json.dumps({**json.loads(text), "seconds": 77.0}),
        ),
        "standin-serve/start-1-new/c1: server_cpu_s_per_1k_tokens: ",
    ),
    (
        "a kept baseline",
        rewritten("references/1/cpu/standin-serve/*.json", lambda text: text.replace("0.", "1.")),
        "cannot be judged from the raw files: ",
    ),
    (
        "a file that is gone",
        lambda folder: (folder / "standin-serve/start-1-new/c3/result.json").unlink(),
        "standin-serve/start-1-new/c3: the raw files cannot be read: ",
    ),
)


@pytest.mark.parametrize(("change", "told"), [one[1:] for one in PLANTED], ids=lambda _: "")
def test_what_was_changed_is_named(
    measured: tuple[Suite, Path], tmp_path: Path, change: Change, told: str
) -> None:
    checkout, run = measured
    folder = shutil.copytree(run, tmp_path / "run")
    assert faults(recomputed(checkout, folder)) == []
    change(folder)
    found = faults(recomputed(checkout, folder))
    assert any(told in one for one in found), found


def rerecorded(folder: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change lines of records as who can compute their checksums would."""
    from perfgate.core.durable_files import append_line

    path = folder / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    for line in lines:
        line.pop("checksum", None)
        change(line)
        append_line(path, line, base=folder / "run.json")


def test_a_record_written_anew_with_its_checksums_is_not_what_the_files_say(
    measured: tuple[Suite, Path], tmp_path: Path
) -> None:
    checkout, run = measured
    folder = shutil.copytree(run, tmp_path / "run")

    def faster(line: dict[str, object]) -> None:
        if line["record"] == "measurement" and isinstance(line["metrics"], dict):
            line["metrics"]["output_throughput"] *= 2

    rerecorded(folder, faster)
    found = faults(recomputed(checkout, folder))
    assert any("standin-serve/start-1-new/c1: output_throughput: " in one for one in found), found


def test_a_verdict_written_anew_is_not_what_the_numbers_say(
    measured: tuple[Suite, Path], tmp_path: Path
) -> None:
    checkout, run = measured
    folder = shutil.copytree(run, tmp_path / "run")

    def better(line: dict[str, object]) -> None:
        if line["record"] == "verdict" and isinstance(line["judgements"], list):
            line["verdict"] = "IMPROVEMENT"
            line["judgements"][0]["verdict"] = "IMPROVEMENT"

    rerecorded(folder, better)
    found = faults(recomputed(checkout, folder))
    assert "standin-serve-c1: IMPROVEMENT in the records, PASS from the raw files" in found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda line: line.pop("basis", None), "did not keep what its verdicts rest on"),
        (
            lambda line: line.get("basis", {}).update(rule_version="2"),
            "another version of the gate's rule",
        ),
    ],
    ids=["none", "older"],
)
def test_a_run_of_another_rule_is_refused(
    measured: tuple[Suite, Path], tmp_path: Path, change: Change, told: str
) -> None:
    checkout, run = measured
    folder = shutil.copytree(run, tmp_path / "run")
    rerecorded(folder, change)  # type: ignore[arg-type]
    with pytest.raises(ReleaseRefused, match=told) as refused:
        recomputed(checkout, folder)
    assert refused.value.status == ReleaseStatus.OTHER_VERSION


def test_a_scenario_that_is_another_one_now_is_refused(
    measured: tuple[Suite, Path], tmp_path: Path
) -> None:
    checkout = copied(measured[0], tmp_path)
    checkout.edit(lambda text: text.replace("isl: 16", "isl: 17"))
    with pytest.raises(ReleaseRefused, match="another one than the run measured") as refused:
        recomputed(checkout, measured[1])
    assert refused.value.status == ReleaseStatus.NOT_REPRODUCED
