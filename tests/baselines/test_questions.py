"""Questions once, answers as bits; what is missing or altered is told."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from building import SUMS, baseline, of_commit, with_answers
from tables import each

from perfgate.baselines import BaselineRun, Entry, Store, read, suite_store
from perfgate.baselines.questions import questions_of, unpacked
from perfgate.core.errors import InputError
from perfgate.core.plain import to_plain
from perfgate.judging.acceptance.promotion import promote

GSM8K = [f"accuracy:gsm8k:exact_match:{name}" for name in ("strict-match", "flexible-extract")]


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


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


def question_file(store: Store) -> Path:
    (path,) = (store.folder / "questions").glob("*/*.json")
    return path


class TestAnswers:
    @each(
        ("text", "problem"),
        [("gA==", "one bit for each"), ("gAA=", "one bit for each"), ("/w==", "one bit for each")]
        + [("g", "not base64"), ("gÄ==", "not base64"), ("", "one bit for each")],
    )
    def test_what_is_not_a_bit_a_question_is_refused(self, text: str, problem: str) -> None:
        keys = tuple("abcdefghi") if text == "gA==" else ("a", "b", "c")
        with pytest.raises(InputError, match=problem):
            unpacked(text, keys)


class TestOneFileATask:
    def test_three_evaluations_of_gsm8k_take_little(self, store: Store) -> None:
        path = store.save(baseline(entries={"gsm8k": evaluations()}))
        assert store.list() == [path]
        with pytest.raises(InputError, match="cannot be a hardware's label"):
            store.save(baseline(hardware="questions"))
        assert path.stat().st_size <= 10_000
        entries = read(path).entries
        assert entries == {"gsm8k": evaluations()}
        answers = entries["gsm8k"].runs[0].answers[GSM8K[0]]
        assert list(answers) == sorted(answers)
        assert to_plain(answers) == dict(answers)

    def test_all_commits_share_it(self, store: Store) -> None:
        for seed, commit in enumerate(("a", "b", "c")):
            store.save(of_commit(commit, entries={"gsm8k": evaluations(seed=seed)}))
        path = question_file(store)
        assert path.parent.name == "gsm8k"
        plain = json.loads(path.read_text())
        assert plain["questions"] == sorted(evaluations().runs[0].answers[GSM8K[0]])
        canonical = {"questions": plain["questions"], "task": "gsm8k"}
        text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
        assert path.stem == sha(text)

    def test_another_version_of_the_task_is_another_file(self, store: Store) -> None:
        for commit, last in (("a", "q2"), ("b", "q3")):
            store.save(of_commit(commit, entries={"sums": with_answers({"q1": True, last: False})}))
        assert len(list((store.folder / "questions" / "sums").iterdir())) == 2
        chosen = store.of_scenario("cpu", "small-serve")
        assert [sorted(one.entries["sums"].runs[0].answers[SUMS]) for one in chosen] == [
            ["q1", "q2"],
            ["q1", "q3"],
        ]

    def test_promotion_takes_it_along(self, suite_root: Path, store: Store) -> None:
        candidates = Store(suite_root / "elsewhere")
        entries = {"sums": with_answers({"q1": True, "q2": False})}
        candidate = candidates.save(baseline(accepted_by="nobody yet", entries=entries))
        done = promote(candidate, by="Ada", reason="x")
        assert question_file(store).read_bytes() == question_file(candidates).read_bytes()
        assert read(done.file).entries == entries

    def test_a_damaged_one_is_written_anew_with_the_next_baseline(self, store: Store) -> None:
        entries = {"sums": with_answers({"q1": True, "q2": False})}
        store.save(of_commit("a", entries=entries))
        question_file(store).write_text("{")
        with pytest.raises(InputError, match="list of questions"):
            read(store.path("cpu", "small-serve", "a"))
        path = store.save(of_commit("b", entries=entries))
        assert read(path).entries == entries

    @each("metric", ["x", "../../etc", "accuracy:a/b:c:d", ".", "", "é"])
    def test_any_metric_has_a_folder_of_its_own_below_the_store(self, metric: str) -> None:
        file = questions_of(metric, ["q"]).file(Path("/store"))
        assert file.parent.parent == Path("/store/questions")
        assert file.parent.name.strip(".")


class TestMissingOrAltered:
    @pytest.fixture
    def path(self, store: Store) -> Path:
        return store.save(baseline(entries={"sums": with_answers({"q1": True, "q2": False})}))

    def test_missing(self, path: Path, store: Store) -> None:
        gone = question_file(store)
        gone.unlink()
        with pytest.raises(InputError, match="answers belong to are missing") as caught:
            read(path)
        assert caught.value.file == gone
        assert f"git checkout -- {gone}" in str(caught.value.hint)

    @pytest.mark.parametrize(
        "change",
        [
            lambda plain: plain["questions"].append("q3"),
            lambda plain: plain["questions"].reverse(),
            lambda plain: plain.update(task="other"),
        ],
    )
    def test_altered(
        self, path: Path, store: Store, change: Callable[[dict[str, object]], object]
    ) -> None:
        read(path)  # what was read before is not believed
        file = question_file(store)
        plain = json.loads(file.read_text())
        change(plain)
        file.write_text(json.dumps(plain))
        with pytest.raises(InputError, match="list of questions was edited by hand") as caught:
            read(path)
        assert (caught.value.file, caught.value.hint) == (file, f"git checkout -- {file}")
