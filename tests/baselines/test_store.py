"""A store of baselines: one file a commit, questions once for all, and nothing half-written."""

import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from building import SUMS, baseline, entry, of_commit, with_answers
from tables import each

from perfgate.baselines import (
    NOBODY,
    Baseline,
    BaselineRun,
    Entry,
    Retired,
    Store,
    candidate_store,
    own_store,
    read,
    suite_store,
)
from perfgate.baselines import store as stores
from perfgate.baselines.questions import questions_of, unpacked
from perfgate.core.errors import InputError
from perfgate.core.plain import to_plain
from perfgate.engines.base import EngineBuild
from perfgate.judging.acceptance import promote

BUILD = EngineBuild("llama.cpp", "1.3.0", "fed987")
GSM8K = [f"accuracy:gsm8k:exact_match:{name}" for name in ("strict-match", "flexible-extract")]
TWO = {"sums": with_answers({"q1": True, "q2": False})}


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


def of(commit: str, version: str, **changes: Any) -> Baseline:
    return baseline(engine=EngineBuild("llama.cpp", version, commit), **changes)


def test_one_file_a_commit_and_no_drafts(store: Store) -> None:
    paths = [store.save(of_commit(commit)) for commit in ("bbb", "aaa")]
    for name in (".abc123.json.x7", ".hidden.json", "abc123.json~"):
        (paths[0].parent / name).write_text("{")
    assert store.list() == sorted(paths)


def test_the_same_commit_keeps_its_other_entries_and_its_level(store: Store) -> None:
    old = {"c1": entry(1.0), "c4": entry(4.0)}
    store.save(baseline(entries=old, change="regression", regression="safer sampling"))
    newer = {"c4": entry(5.0), "sums": entry(0.5)}
    found = read(store.save(baseline(entries=newer, accepted_by="Grace", change="none")))
    assert found.entries == {"c1": entry(1.0), **newer}
    assert (found.accepted_by, found.change) == ("Grace", "regression")
    assert found.regression == "safer sampling"
    store.save(of_commit("e", change="first"))
    worse = store.save(of_commit("e", change="regression", regression="a fix"))
    assert read(worse).change == "regression"


def test_nothing_of_a_retired_baseline_is_kept(store: Store) -> None:
    retired = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")
    store.save(baseline(retired=retired, change="regression", regression="x"))
    found = read(store.save(baseline(entries={"c4": entry(9.0)})))
    assert (set(found.entries), found.retired, found.change) == ({"c4"}, None, "none")


def test_an_empty_folder_has_nothing_to_choose(store: Store) -> None:
    store.path("cpu", "small-serve", "x").parent.mkdir(parents=True)
    assert store.list() == []
    assert store.anchor("cpu", "small-serve", BUILD) is None
    store.save(baseline())
    for place in (("8xH200", "small-serve"), ("cpu", "other")):
        assert store.choose(*place, BUILD) is None


def test_a_broken_file_is_told_and_stays(store: Store) -> None:
    store.save(baseline())
    broken = store.save(of_commit("other"))
    broken.write_text("{")
    with pytest.raises(InputError, match="not JSON") as caught:
        store.choose("cpu", "small-serve", BUILD)
    assert caught.value.file == broken
    with pytest.raises(InputError):
        store.save(of_commit("other"))
    assert broken.read_text() == "{"


def test_a_candidate_put_there_by_hand_is_refused(store: Store) -> None:
    path = store.save(baseline(accepted_by=NOBODY))
    with pytest.raises(InputError, match="no person has accepted") as caught:
        store.choose("cpu", "small-serve", BUILD)
    assert (caught.value.file, caught.value.field) == (path, "accepted.by")


@each("part", ["..", ".", "", "a/b", "/etc", ".hidden", "a b", "a\n", "a\0"])
def test_a_name_cannot_leave_the_store(store: Store, part: str) -> None:
    for place in ((part, "s", "c"), ("h", part, "c"), ("h", "s", part)):
        with pytest.raises(InputError, match="cannot be part of a baseline's file name"):
            store.path(*place)
    for one in (of_commit("anchor"), baseline(scenario=part)):
        with pytest.raises(InputError, match="cannot be part of a baseline's file name"):
            store.save(one)
    assert store.list() == []


def test_three_stores(suite_root: Path, tmp_path: Path) -> None:
    assert suite_store().folder == suite_root / "baselines"
    assert candidate_store().folder == tmp_path / "home" / "candidates"
    assert own_store().folder == tmp_path / "home" / "baselines"


def test_edited_numbers_are_refused_where_they_are_used(store: Store) -> None:
    for commit, version in (("a", "1.0"), ("b", "1.1")):
        store.save(of(commit, version))
    nearest = store.path("cpu", "small-serve", "b")
    nearest.write_text(nearest.read_text().replace("101.0", "110.0"))
    with pytest.raises(InputError, match="edited by hand") as caught:
        store.choose("cpu", "small-serve", BUILD)
    assert (caught.value.file, caught.value.field) == (nearest, "entries.c1")


def test_only_what_is_compared_with_is_read_in_full(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        runs = {"c1": entry(*map(float, range(1, 6)))}
        store.save(of(f"c{number}", f"1.{number}", entries=runs))
    asked: list[Path] = []

    def reading(path: Path) -> Baseline:
        asked.append(path)
        return read(path)

    monkeypatch.setattr(stores, "read", reading)
    chosen = store.choose("cpu", "small-serve", EngineBuild("llama.cpp", "2.0", "x"))
    assert chosen is not None
    assert len(chosen.window) == 40
    found = chosen.entry("c1")
    assert found is not None
    assert len(found.runs) == 30
    assert chosen.entry("c64") is None
    assert [path.stem for path in asked] == ["c39", "c38", "c37", "c36", "c35", "c34"]


def test_a_file_that_changed_is_read_again_though_size_and_time_are_as_before(store: Store) -> None:
    path = store.save(of_commit("a", reason="first"))
    assert store.choose("cpu", "small-serve", BUILD) is not None
    seen, content = path.stat(), path.read_text()
    path.write_text(content.replace('"reason": "first"', '"reason": "secon"'))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    with pytest.raises(InputError, match="edited by hand"):
        store.choose("cpu", "small-serve", BUILD)


def test_values_are_one_per_start_that_has_the_metric() -> None:
    found = entry(100.0, 101.0)
    other = BaselineRun("run-3", "2026-11-03T08:00:00+00:00", {"duration_s": 9.0})
    both = replace(found, runs=(*found.runs, other))
    assert both.values("output_throughput") == [100.0, 101.0]
    assert both.values("ttft_mean_ms") == []


@each(
    "stored, measured, differing",
    [
        ({}, {"boost_slider": "0"}, ()),
        ({"boost_slider": "0"}, {}, ()),
        ({"boost_slider": "0"}, {"boost_slider": "4"}, ("boost_slider: measured 4, baseline 0",)),
        # Baselines without commands are of runs without.
        ({}, {"before": "set it"}, ("before: measured set it, baseline none",)),
        ({"after": "unset it"}, {}, ("after: measured none, baseline unset it",)),
        (
            {"content": "a", "cpu": "Grace"},
            {"cpu": "Xeon", "driver": "570.1"},
            (
                "content: measured none, baseline a",
                "cpu: measured Xeon, baseline Grace",
                "driver: measured 570.1, baseline none",
            ),
        ),
    ],
)
def test_facts_that_differ_are_told_of_both_sides(stored, measured, differing) -> None:
    assert Entry(stored, ()).differences(measured) == differing


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def evaluations(number: int = 3, seed: int = 1) -> Entry:
    """Evaluations of GSM8K: its questions by the hashes that lm_eval gives them."""
    random = Random(seed)
    keys = [f"{sha(f'question {one}')}:{sha(f'answer {one}')}" for one in range(1319)]
    random.shuffle(keys)
    runs = []
    for night in range(1, number + 1):
        answers = {metric: {key: random.random() < 0.95 for key in keys} for metric in GSM8K}
        scores = {metric: sum(given.values()) / len(keys) for metric, given in answers.items()}
        started = f"2026-11-{night:02d}T02:00:00+00:00"
        runs.append(BaselineRun(f"nightly-{night}", started, scores, answers, 812.4, 1))
    facts = {"content": "0123456789abcdef", "evaluator": "lm_eval 0.4.13", "model": "b179c952"}
    return Entry(facts, tuple(runs))


def question_file(store: Store) -> Path:
    (path,) = (store.folder / "questions").glob("*/*.json")
    return path


class TestQuestions:
    @each(
        "text, problem",
        [
            *((text, "one bit for each") for text in ("gA==", "gAA=", "/w==", "")),
            *((text, "not base64") for text in ("g", "gÄ==")),
        ],
    )
    def test_what_is_not_a_bit_a_question_is_refused(self, text: str, problem: str) -> None:
        keys = tuple("abcdefghi") if text == "gA==" else ("a", "b", "c")
        with pytest.raises(InputError, match=problem):
            unpacked(text, keys)

    def test_three_evaluations_of_gsm8k_take_little_and_commits_share_them(
        self, store: Store
    ) -> None:
        path = store.save(baseline(entries={"gsm8k": evaluations()}))
        store.save(of_commit("b", entries={"gsm8k": evaluations(seed=2)}))
        with pytest.raises(InputError, match="cannot be a hardware's label"):
            store.save(baseline(hardware="questions"))
        assert path.stat().st_size <= 10_000
        found = read(path).entries
        assert found == {"gsm8k": evaluations()}
        answers = found["gsm8k"].runs[0].answers[GSM8K[0]]
        assert list(answers) == sorted(answers)
        assert to_plain(answers) == dict(answers)
        assert all(isinstance(answer, bool) for answer in answers.values())
        shared = question_file(store)
        plain = json.loads(shared.read_text())
        assert (shared.parent.name, plain["questions"]) == ("gsm8k", list(answers))
        canonical = {"questions": plain["questions"], "task": "gsm8k"}
        assert shared.stem == sha(json.dumps(canonical, sort_keys=True, separators=(",", ":")))

    def test_another_version_of_the_task_is_another_file(self, store: Store) -> None:
        for commit, last in (("a", "q2"), ("b", "q3")):
            path = store.save(
                of_commit(commit, entries={"s": with_answers({"q1": True, last: False})})
            )
            (told,) = json.loads(path.read_text())["entries"]["s"]["runs"][0]["answers"].values()
            assert (told["task"], told["count"]) == ("sums", 2)
            assert base64.b64decode(told["right"]) == bytes([0b10000000])
            assert read(path).entries["s"].runs[0].answers[SUMS] == {"q1": True, last: False}
        assert len(list((store.folder / "questions" / "sums").iterdir())) == 2

    def test_promotion_takes_it_along(self, suite_root: Path, store: Store) -> None:
        candidates = Store(suite_root / "elsewhere")
        candidate = candidates.save(baseline(accepted_by="nobody yet", entries=TWO))
        done = promote(candidate, by="Ada", reason="x")
        assert question_file(store).read_bytes() == question_file(candidates).read_bytes()
        assert read(done.file).entries == TWO

    @each("metric", ["x", "../../etc", "accuracy:a/b:c:d", ".", "", "é"])
    def test_any_metric_has_a_folder_of_its_own_below_the_store(self, metric: str) -> None:
        file = questions_of(metric, ["q"]).file(Path("/store"))
        assert file.parent.parent == Path("/store/questions")
        assert file.parent.name.strip(".")

    @each(
        "change, problem",
        [
            (None, "answers belong to are missing"),
            (lambda plain: plain["questions"].append("q3"), "was edited by hand"),
            (lambda plain: plain["questions"].reverse(), "was edited by hand"),
            (lambda plain: plain.update(task="other"), "was edited by hand"),
        ],
    )
    def test_missing_or_altered_it_is_refused_until_the_next_baseline_writes_it(
        self,
        change: Callable[[dict[str, Any]], object] | None,
        problem: str,
        suite_root: Path,
        tmp_path: Path,
    ) -> None:
        store = Store(tmp_path)
        path = store.save(baseline(entries=TWO))
        read(path)  # what was read before is not believed
        file = question_file(store)
        plain = json.loads(file.read_text())
        file.unlink()
        if change is not None:
            change(plain)
            file.write_text(json.dumps(plain))
        with pytest.raises(InputError, match=problem) as caught:
            read(path)
        assert caught.value.file == file
        assert f"git checkout -- {file}" in str(caught.value.hint)
        assert read(store.save(of_commit("b", entries=TWO))).entries == TWO
