"""The life of baselines, played in real git repositories: the suite's and the engine's.

Those of rehearsals have a store of their own, which takes and gives nothing measured.
"""

import subprocess
from dataclasses import replace

import pytest
from life import HARDWARE, SCENARIO, Life, life
from refusals import refused

from perfgate import baselines
from perfgate.baselines import read, rehearsal_store, suite_store
from perfgate.baselines.decisions import pin_anchor, retire
from perfgate.baselines.recording import record_candidates
from perfgate.core.verdict import Verdict
from perfgate.judging.acceptance import history, promote

__all__ = ["life"]  # the fixture


def test_a_loss_or_a_gain_is_accepted_by_a_person_and_starts_a_level(life: Life) -> None:
    life.accept(life.measure(life.build("1.0.0"), 1000.0), "first release")
    slower = life.build("1.1.0rc1", "check every answer")
    measured = life.measure(slower, 900.0)
    assert measured.verdict("baseline") == Verdict.REGRESSION
    (candidate,), _ = record_candidates([measured.folder])
    refused(promote, candidate, by="Ada", reason="1.1", match="the candidate is a regression")
    done = life.accept(measured, "1.1", accept_regression="answers are checked now")
    assert done.change == "regression"
    assert life.stored(slower).regression == "answers are checked now"

    # Nothing of the old level is in the window: 900 is the level now, and 1000 an improvement.
    measured = life.measure(life.build("1.1.0rc2"), 900.0)
    assert measured.level == ["1.1.0rc1"]
    assert measured.verdict("baseline") == Verdict.PASS
    # The anchor is still the release, until a person pins another.
    assert measured.verdict("anchor") == Verdict.REGRESSION
    pin_anchor(life.stored(slower).file or life.suite.path, by="Ada", reason="1.1 is the level")
    measured = life.measure(life.build("1.1.0rc3"), 900.0)
    assert {one.verdict for one in measured.judgements} == {Verdict.PASS}

    measured = life.measure(life.build("1.1.0rc4"), 1000.0)
    assert life.accept(measured, "faster attention").change == "improvement"
    # Back at the old speed is a regression now.
    measured = life.measure(life.build("1.1.0rc5"), 900.0)
    assert measured.level == ["1.1.0rc4"]
    assert measured.verdict("baseline") == Verdict.REGRESSION


def test_small_steps_pass_one_by_one_and_fail_against_the_anchor(life: Life) -> None:
    life.accept(life.measure(life.build("1.0.0"), 1000.0, starts=10), "first release")
    speed, ends = 1000.0, []
    for number in range(1, 8):
        speed *= 0.995
        measured = life.measure(life.build(f"1.1.0rc{number}"), speed, starts=10)
        nearest = measured.verdict("baseline")
        # The nearest baseline of the first is the anchor itself.
        ends.append((nearest, measured.verdict("anchor") if number > 1 else nearest))
        if ends[-1][1] == Verdict.REGRESSION:
            break
        assert life.accept(measured, "within the band").change == "none"
    assert [nearest for nearest, _ in ends] == [Verdict.PASS] * 5
    assert [anchor for _, anchor in ends] == [Verdict.PASS] * 4 + [Verdict.REGRESSION]
    (candidate,), _ = record_candidates([measured.folder])
    refused(promote, candidate, by="Ada", reason="ok", match="the candidate is a regression")
    # The history shows what the steps add up to.
    steps = history(suite_store(), HARDWARE, SCENARIO)
    assert [step.is_anchor for step in steps] == [True] + [False] * 4
    last = steps[-1].values[0]
    assert last.since_before == pytest.approx(-0.005, abs=1e-4)
    assert last.since_anchor == pytest.approx(0.995**4 - 1, abs=1e-4)


def test_branches_of_the_suite_merge_without_conflict(life: Life) -> None:
    life.accept(life.measure(life.build("1.0.0"), 1000.0), "first release")
    builds = [life.build(f"1.1.0rc{number}") for number in (1, 2)]
    for branch, build in zip(("one", "two"), builds, strict=True):
        life.suite.git("checkout", "--quiet", "-b", branch, "main")
        life.accept(life.measure(build, 1000.0), f"on branch {branch}")
    life.suite.git("checkout", "--quiet", "main")
    for branch in ("one", "two"):
        life.suite.git("merge", "--quiet", "--no-ff", "-m", f"merge {branch}", branch)
    assert [life.stored(build).reason for build in builds] == ["on branch one", "on branch two"]
    measured = life.measure(life.build("1.1.0rc3"), 1000.0)
    assert measured.level == ["1.1.0rc2", "1.1.0rc1", "1.0.0"]


def test_two_branches_with_numbers_of_one_commit_cannot_be_mixed(life: Life) -> None:
    build = life.build("1.0.0")
    for branch, speed in (("one", 1000.0), ("two", 1002.0)):
        life.suite.git("checkout", "--quiet", "-b", branch, "main")
        life.accept(life.measure(build, speed), f"on branch {branch}")
    file = suite_store().path(HARDWARE, SCENARIO, build.commit)
    with pytest.raises(subprocess.CalledProcessError):
        life.suite.git("merge", "--quiet", "one")
    refused(read, file, match="not JSON")
    # Taking each conflicting line from either side makes numbers that no run measured.
    ours = life.suite.git("show", "two:" + str(file.relative_to(life.suite.path)))
    file.write_text(ours.replace("1002.0", "1000.0"))
    refused(read, file, match="the baseline was edited by hand")
    life.suite.git("checkout", "--ours", "--", str(file))
    assert read(file).reason == "on branch two"


def test_a_rehearsal_s_candidate_is_promoted_among_its_own_kind_alone(life: Life) -> None:
    """The same numbers, as if stand-ins had made them."""
    run = life.measure(life.build("1.0.0"), 100.0).folder
    refused(record_candidates, [run], rehearsal=True, match="no mock program made its numbers")
    assert baselines.rehearsal_candidate_store().list() == []
    (measured,), _ = record_candidates([run])
    made = replace(read(measured), synthetic=True)
    synthetic = baselines.rehearsal_candidate_store().save(made, merge=False)
    for candidate, rehearsal, problem in (
        (synthetic, False, "can never be a baseline of measured ones"),
        (measured, True, "belong into no store of rehearsals"),
    ):
        refused(promote, candidate, by="A", reason="b", rehearsal=rehearsal, match=problem)
    for store, kept in ((suite_store(), []), (baselines.candidate_store(), [measured])):
        refused(store.save, made, match="in a store of measured ones")
        assert store.list() == kept
    assert rehearsal_store().list() == []
    done = promote(synthetic, by="Ada", reason="why", rehearsal=True)
    assert rehearsal_store().list() == [done.file]
    # A copy among measured ones is refused, also one that no longer says what it is.
    copy = suite_store().path(HARDWARE, SCENARIO, made.engine.commit)
    copy.parent.mkdir(parents=True)
    text = done.file.read_text()
    for content, problem in (
        (text, "in a store of measured ones"),
        (text.replace('"synthetic": true,', ""), "hash"),
    ):
        copy.write_text(content)
        refused(suite_store().of_scenario, HARDWARE, SCENARIO, match=problem)
    assert read(retire(done.file, by="Ada", reason="old")).synthetic
