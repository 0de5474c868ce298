"""Where lm_eval's tasks are that a repository brings along, and what their scores are called."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from perfgate.core.paths import packaged
from perfgate.evaluators.lm_eval import _scores, folder_of, known_scores

BOTH = {"exact_match:strict-match", "exact_match:flexible-extract"}
OWN = """
task: mine
custom_dataset: !function dataset.load
metric_list: [{metric: f1}, {metric: exact}]
"""


def test_the_task_that_perfgate_brings_along() -> None:
    assert folder_of("perfgate_arithmetic") == packaged() / "fixtures" / "lm_eval_tasks"
    assert folder_of("gsm8k") is None
    assert known_scores()["perfgate_arithmetic"] == BOTH


def test_the_scores_of_gsm8k_are_those_of_lm_evals_file() -> None:
    found = find_spec("lm_eval")
    if found is None or found.origin is None:
        pytest.skip("lm_eval is not installed")
    file = Path(found.origin).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
    assert known_scores()["gsm8k"] == _scores(file) == BOTH


def write(root: Path, task: str, text: str) -> Path:
    file = root / "fixtures" / "lm_eval_tasks" / task / f"{task}.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_a_gate_repositorys_own_task_is_scored_as_its_file_says(suite_root: Path) -> None:
    write(suite_root, "mine", OWN)
    write(suite_root, "gsm8k", OWN + "filter_list: [{name: last}]")
    assert known_scores()["mine"] == {"f1:none", "exact:none"}
    assert known_scores()["gsm8k"] == {"f1:last", "exact:last"}
    assert known_scores()["perfgate_arithmetic"] == BOTH


@pytest.mark.parametrize("text", ["include: other.yaml", "[", "- a", "metric_list: 7"])
def test_scores_that_the_file_does_not_tell_are_not_known(suite_root: Path, text: str) -> None:
    write(suite_root, "gsm8k", text)
    assert "gsm8k" not in known_scores()


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "- " * 50_000,
        "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
        + "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 12))
        + "metric_list: [{metric: *x11}]\n",
        "metric_list: [" + "{metric: a}, " * 10_000 + "]\nfilter_list: ["
        "" + "{name: a}, " * 10_000 + "]\n",
        "metric_list: [{metric: a}]\n" + "x" * 2**20,
    ],
    ids=["brackets", "dashes", "aliases", "product", "size"],
)
def test_a_file_that_would_end_the_process_tells_no_scores(suite_root: Path, text: str) -> None:
    write(suite_root, "mine", text)
    assert "mine" not in known_scores()
