"""Verdicts of real sessions computed again from what their programs wrote; what was changed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkouts import Finished, Suite, rerecord, twice_as_fast
from road_words import ACCURACY, BROKEN, METRIC, POINT, SERVING
from tables import each

from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

pytestmark = pytest.mark.slow

Change = Callable[[dict[str, Any]], object]
Measured = tuple[Suite, Finished]


def test_speed_against_the_machine_itself(suite: Suite) -> None:
    counts = []
    for name in ("run-1", "run-2"):
        run = suite.folder / name
        suite.run(*POINT, "--engine-commit=aaa", "--self-reference=fresh", f"--run-dir={run}")
        assert suite.judged_again(run).keys() == {"standin-serve-c1"}
        (line,) = Finished(0, "", run).records("verdict")
        earlier = line["provenance"]["earlier"] or {"runs": []}
        own = {one["run"] for one in earlier["runs"]}
        # What the machine measured of itself in this session is no earlier session's.
        assert json.loads((run / "run.json").read_text())["id"] not in own
        counts.append(len(own))
    assert counts[1] == counts[0] + 1


def test_the_speed_of_broken_answers_is_none_again(with_baseline: Suite, tmp_path: Path) -> None:
    """The answers are judged again, too: a record that forgets them is not what the files say."""
    done = with_baseline.run(SERVING, ACCURACY, "-k", "c1 or sums", *BROKEN)
    assert done.verdicts == {"sums": "REGRESSION", "c1": "INCONCLUSIVE"}
    assert with_baseline.differences() == []
    folder = shutil.copytree(done.folder, tmp_path / "run")
    forgets = {"broken": ""}
    rerecord(folder, lambda line: (line.get("judge_input") or {}).update(forgets))
    (told,) = with_baseline.differences(folder)
    assert told.startswith("standin-serve-c1: judge_input.broken:  in the records, BROKEN_OUTPUT")


def test_a_documented_score_is_measured_again_until_it_is_decided(suite: Suite) -> None:
    """Each evaluation on a fresh start of its own; a loss needs two, and no control."""
    suite.edit(("fewshot: 0}", "fewshot: 0, limit: 50}"))
    documented = {
        "schema_version": 1,
        "scenario": "standin-serve",
        "source": {"document": "made.md", "section": "up", "engine_version": "1.0"},
        "values": {METRIC: {"value": 0.75, "stderr": 0.03}},
    }
    folder = suite.folder / "baselines" / "documented"
    folder.mkdir()
    (folder / "standin-serve.json").write_text(json.dumps(documented))
    done = suite.run(ACCURACY, *BROKEN)
    done.require(1, None, "worse than the documented score: ", "in 2 evaluations")
    assert [(line["role"], line["start"]) for line in done.measured] == [("new", 1), ("new", 2)]
    assert suite.judged_again() == {"standin-serve-sums": "REGRESSION"}
    assert "the documented values" in suite.recomputed()["standin-serve-sums"].not_recomputed
    done = suite.run(ACCURACY)
    assert (done.status, len(done.measured)) == (0, 1), done.output


def test_points_and_their_curve_against_a_baseline(measured: Measured) -> None:
    checkout, done = measured
    labels = ("c1", "c2", "c3", "c4", "sweep")
    passed = {f"standin-serve-{label}": "PASS" for label in labels}
    assert checkout.judged_again() == passed
    assert [one.metrics for one in checkout.recomputed().values()] == [1] * 5
    assert (done.folder / "references/1/cpu/standin-serve/aaa.json").is_file()


START = "standin-serve/start-1-new"
BASELINE = "references/1/cpu/standin-serve/aaa.json"


def change_json(run: Path, file: str, field: str, value: float) -> None:
    plain = json.loads((run / file).read_text())
    (run / file).write_text(json.dumps({**plain, field: value}))


def replace(run: Path, file: str, old: str, new: str) -> None:
    (run / file).write_text((run / file).read_text().replace(old, new))


def remove(run: Path, file: str) -> None:
    (run / file).unlink()


def better(line: dict[str, Any]) -> None:
    if line["record"] == "verdict":
        line["verdict"] = line["judgements"][0]["verdict"] = "IMPROVEMENT"


RESULT, CPU = f"{START}/c2/result.json", f"{START}/c1/server_cpu.json"


@each(
    ("told", "change", "words"),
    [
        (f"{START}/c2: output_throughput: ", change_json, (RESULT, "output_throughput", 12345.0)),
        (f"{START}/c1: server_cpu_s_per_1k_tokens: ", change_json, (CPU, "seconds", 77.0)),
        ("cannot be judged from the raw files: ", replace, (BASELINE, "0.", "1.")),
        (f"{START}/c3: the raw files cannot be read: ", remove, (f"{START}/c3/result.json",)),
        (f"{START}/c1: output_throughput: ", rerecord, (twice_as_fast,)),
        (
            "standin-serve-c1: IMPROVEMENT in the records, PASS from the raw files",
            rerecord,
            (better,),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_changed_is_named(
    measured: Measured, tmp_path: Path, told: str, change: Callable[..., None], words: Any
) -> None:
    """In the files, or in the records with their checksums written again."""
    checkout, done = measured
    folder = shutil.copytree(done.folder, tmp_path / "run")
    change(folder, *words)
    found = checkout.differences(folder)
    assert any(told in one for one in found), found


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
    measured: Measured, tmp_path: Path, field: str, change: Change
) -> None:
    def edit(line: dict[str, Any]) -> None:
        if line["record"] == "verdict" and line["probe"] == "c1":
            change(line["judge_input"])

    checkout, done = measured
    folder = shutil.copytree(done.folder, tmp_path / "run")
    rerecord(folder, edit)
    found = checkout.recomputed(folder)
    told = found["standin-serve-c1"].differences
    assert any(one.startswith(f"standin-serve-c1: judge_input.{field}: ") for one in told), told
    assert [line for one in found.values() for line in one.differences] == list(told)


@each(
    ("told", "change"),
    [
        ("schema_version", lambda line: line.update(judge_input=None)),
        ("rule_version", lambda line: line.get("judge_input", {}).update(rule_version="2")),
        ("schema_version", lambda line: line.get("judge_input", {}).update(schema_version=2)),
    ],
    ids=["none", "older", "newer"],
)
def test_a_run_of_another_rule_is_refused(
    measured: Measured, tmp_path: Path, told: str, change: Change
) -> None:
    checkout, done = measured
    folder = shutil.copytree(done.folder, tmp_path / "run")
    rerecord(folder, change)
    with pytest.raises(ReleaseRefused, match=rf"judge_input\.{told}") as refused:
        checkout.recomputed(folder)
    assert refused.value.status == ReleaseStatus.OTHER_VERSION


def test_a_scenario_that_is_another_one_now_is_refused(measured: Measured, tmp_path: Path) -> None:
    checkout = measured[0].copy(tmp_path / "suite")
    checkout.edit(("isl: 16", "isl: 17"))
    with pytest.raises(ReleaseRefused, match="another one than the run measured") as refused:
        checkout.recomputed()
    assert refused.value.status == ReleaseStatus.NOT_REPRODUCED
