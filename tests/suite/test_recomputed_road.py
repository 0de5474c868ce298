"""Verdicts of real sessions, computed anew from what their programs wrote; and what was changed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkouts import (
    ACCURACY,
    GIVEN_BAND,
    POINT,
    SERVING,
    STORED,
    Finished,
    Suite,
    copied,
    differences,
    document_a_score,
    recomputed,
)
from tables import each

from perfgate.core.durable_files import append_line
from perfgate.core.verdict import Verdict
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

pytestmark = pytest.mark.slow

START = "standin-serve/start-1-new"
Change = Callable[[dict[str, Any]], object]


def test_speed_against_the_machine_itself(suite: Suite) -> None:
    counts = []
    for name in ("run-1", "run-2"):
        run = suite.folder / name
        suite.run(*POINT, "--engine-commit=aaa", "--self-reference=fresh", f"--run-dir={run}")
        found = recomputed(suite, run)
        assert differences(found) == []
        assert {one.test for one in found.values() if one.verdict} == {"standin-serve-c1"}
        own = {
            one["run"]
            for line in Finished(0, "", run).records("verdict")
            for one in (line["provenance"]["earlier"] or {"runs": []})["runs"]
        }
        # What the machine measured of itself in this session is no earlier session's.
        assert json.loads((run / "run.json").read_text())["id"] not in own
        counts.append(len(own))
    assert counts[1] == counts[0] + 1


def test_the_speed_of_broken_answers_is_none_again(with_baseline: Suite, tmp_path: Path) -> None:
    """The answers are judged again, too: a record that forgets them is not what the files say."""
    broken = ("--inject", "accuracy.temperature=9")
    done = with_baseline.run(SERVING, ACCURACY, "-k", "c1 or sums", *broken)
    assert done.verdicts == {"sums": "REGRESSION", "c1": "INCONCLUSIVE"}
    (line,) = [one for one in done.records("verdict") if one["probe"] == "c1"]
    assert line["judge_input"]["broken"] == "BROKEN_OUTPUT in sums"
    assert differences(recomputed(with_baseline)) == []

    def forgets(line: dict[str, Any]) -> None:
        if line["record"] == "verdict":
            line["judge_input"]["broken"] = ""

    found = differences(recomputed(with_baseline, rerecorded(done, tmp_path / "run", forgets)))
    (told,) = found
    assert told.startswith("standin-serve-c1: judge_input.broken:  in the records, BROKEN_OUTPUT")


def test_two_builds_side_by_side(suite: Suite) -> None:
    suite.edit(STORED, *GIVEN_BAND)
    done = suite.run(*POINT, "--ab", "A=this", "B=engine.settings.cpu_threads=1")
    assert done.verdicts == {"c1": "REGRESSION"}, done.output
    found = recomputed(suite)
    assert differences(found) == []
    assert found["standin-serve-c1"].verdict == Verdict.REGRESSION


def test_a_documented_score_is_measured_again_until_it_is_decided(suite: Suite) -> None:
    """Each evaluation on a fresh start of its own; a loss needs two, and no control."""
    document_a_score(suite)
    done = suite.run(ACCURACY, "--inject", "accuracy.temperature=9")
    assert done.status == 1, done.output
    starts = [(line["role"], line["start"]) for line in done.records("measurement")]
    assert starts == [("new", 1), ("new", 2)]
    assert "worse than the documented score: " in done.output
    assert "in 2 evaluations" in done.output
    found = recomputed(suite)
    assert differences(found) == []
    (one,) = found.values()
    assert one.verdict == Verdict.REGRESSION
    assert "the documented values" in one.not_recomputed
    done = suite.run(ACCURACY)
    assert (done.status, len(done.records("measurement"))) == (0, 1), done.output


def test_points_and_their_curve_against_a_baseline(measured: tuple[Suite, Finished]) -> None:
    checkout, done = measured
    found = recomputed(checkout)
    assert differences(found) == []
    labels = ("c1", "c2", "c3", "c4", "sweep")
    assert found.keys() == {f"standin-serve-{label}" for label in labels}
    for one in found.values():
        assert one.verdict == Verdict.PASS
        assert one.metrics == 1
    assert (done.folder / "references/1/cpu/standin-serve/aaa.json").is_file()


def in_json(field: str, value: float) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), field: value})


@each(
    ("file", "change", "told"),
    [
        (
            f"{START}/c2/result.json",
            in_json("output_throughput", 12345.0),
            f"{START}/c2: output_throughput: ",
        ),
        (
            f"{START}/c1/server_cpu.json",
            in_json("seconds", 77.0),
            f"{START}/c1: server_cpu_s_per_1k_tokens: ",
        ),
        (
            "references/1/cpu/standin-serve/aaa.json",
            lambda text: text.replace("0.", "1."),
            "cannot be judged from the raw files: ",
        ),
        (f"{START}/c3/result.json", None, f"{START}/c3: the raw files cannot be read: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_changed_is_named(
    measured: tuple[Suite, Finished],
    tmp_path: Path,
    file: str,
    change: Callable[[str], str] | None,
    told: str,
) -> None:
    checkout, done = measured
    folder = shutil.copytree(done.folder, tmp_path / "run")
    text = (folder / file).read_text()
    if change is None:
        (folder / file).unlink()
    else:
        assert change(text) != text
        (folder / file).write_text(change(text))
    found = differences(recomputed(checkout, folder))
    assert any(told in one for one in found), found


def rerecorded(run: Finished, into: Path, change: Change) -> Path:
    """A copy whose records were changed as by somebody who can compute their checksums."""
    folder = shutil.copytree(run.folder, into)
    path = folder / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    for line in lines:
        line.pop("checksum", None)
        change(line)
        append_line(path, line, base=folder / "run.json")
    return folder


def edited(change: Change) -> Change:
    """A change to what the verdict of one point says that it rests on."""

    def edit(line: dict[str, Any]) -> None:
        if line["record"] == "verdict" and line["probe"] == "c1":
            change(line["judge_input"])

    return edit


def in_test(**fields: object) -> Change:
    return lambda given: given["tests"][0].update(fields)


NOISE = {"sigma": 0.5, "between": 0.3, "dof": None, "widen": False, "note": "", "differences": 0}
WAIVER = {"scenario": "standin-serve", "metric": "output_throughput", "at_most": 0.9}


@each(
    ("field", "change"),
    [
        ("tests[output_throughput].band", in_test(band=0.9)),
        ("tests[output_throughput].noise.sigma", in_test(noise=NOISE)),
        ("tests[output_throughput].baseline[0]", in_test(baseline=[1.0])),
        ("tests[output_throughput].new[1]", in_test(new=[1.0, 2.0])),
        ("tests[output_throughput].controls[0]", in_test(controls=[1.0])),
        ("tests[output_throughput].policy", in_test(policy="none")),
        ("tests[output_throughput].sessions", in_test(sessions=9)),
        ("tests[output_throughput].kind", in_test(kind="NoTest")),
        ("tests[1]", lambda given: given["tests"].append({})),
        ("anchor[0]", lambda given: given["anchor"].append({})),
        ("waivers[output_throughput]", lambda given: given["waivers"].append(WAIVER)),
        ("today", lambda given: given.update(today="2020-01-01")),
        ("broken", lambda given: given.update(broken="BROKEN_OUTPUT in sums")),
        ("verdict", lambda given: given.update(verdict="PASS")),
        ("rule.alpha", lambda given: given["rule"].update(alpha=0.4)),
        ("rule.max_runs", lambda given: given["rule"].update(max_runs=99)),
        ("probe", lambda given: given.update(probe="c2")),
        ("extra", lambda given: given.update(extra=1)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_edited_input_of_a_verdict_is_named(
    measured: tuple[Suite, Finished], tmp_path: Path, field: str, change: Change
) -> None:
    checkout, done = measured
    found = recomputed(checkout, rerecorded(done, tmp_path / "run", edited(change)))
    told = found["standin-serve-c1"].differences
    assert any(one.startswith(f"standin-serve-c1: judge_input.{field}: ") for one in told), told
    assert differences(found) == list(told)


def faster(line: dict[str, Any]) -> None:
    if line["record"] == "measurement":
        line["metrics"]["output_throughput"] *= 2


def better(line: dict[str, Any]) -> None:
    if line["record"] == "verdict":
        line["verdict"] = line["judgements"][0]["verdict"] = "IMPROVEMENT"


@each(
    ("change", "told"),
    [
        (faster, f"{START}/c1: output_throughput: "),
        (better, "standin-serve-c1: IMPROVEMENT in the records, PASS from the raw files"),
    ],
)
def test_records_written_anew_with_their_checksums_are_not_what_the_files_say(
    measured: tuple[Suite, Finished], tmp_path: Path, change: Change, told: str
) -> None:
    checkout, done = measured
    found = differences(recomputed(checkout, rerecorded(done, tmp_path / "run", change)))
    assert any(told in one for one in found), found


@each(
    ("change", "told"),
    [
        (lambda line: line.update(judge_input=None), "judge_input.schema_version"),
        (
            lambda line: line.get("judge_input", {}).update(rule_version="2"),
            "judge_input.rule_version",
        ),
        (
            lambda line: line.get("judge_input", {}).update(schema_version=2),
            "judge_input.schema_version",
        ),
    ],
    ids=["none", "older", "newer"],
)
def test_a_run_of_another_rule_is_refused(
    measured: tuple[Suite, Finished], tmp_path: Path, change: Change, told: str
) -> None:
    checkout, done = measured
    with pytest.raises(ReleaseRefused, match=told) as refused:
        recomputed(checkout, rerecorded(done, tmp_path / "run", change))
    assert refused.value.status == ReleaseStatus.OTHER_VERSION


def test_a_scenario_that_is_another_one_now_is_refused(
    measured: tuple[Suite, Finished], tmp_path: Path
) -> None:
    checkout = copied(measured[0], tmp_path / "suite")
    checkout.edit(("isl: 16", "isl: 17"))
    with pytest.raises(ReleaseRefused, match="another one than the run measured") as refused:
        recomputed(checkout)
    assert refused.value.status == ReleaseStatus.NOT_REPRODUCED
