"""The report of lm_eval, which trtllm-eval uses too: scores, their table, a sample an answer."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook


@dataclass(frozen=True)
class Report:
    """What an evaluation found.

    Attributes:
        task: its name in lm_eval.
        version: of the task.
        fewshot: examples shown.
        questions: how many the task has.
        right: filter → which questions were answered right; not empty.
        whole: the best score: 1, or 100 in percent.
    """

    task: str
    version: float
    fewshot: int
    questions: int
    right: Mapping[str, Sequence[bool]]
    whole: float = 1.0

    def scores(self) -> Iterator[tuple[str, float, float]]:
        """(filter, score, its standard error), as lm_eval gives them without a bootstrap."""
        for one, answers in self.right.items():
            mean = sum(answers) / len(answers)
            error = math.sqrt(mean * (1 - mean) / max(1, len(answers) - 1))
            yield one, self.whole * mean, self.whole * error

    def results(self) -> dict[str, Any]:
        """What lm_eval's evaluation gives."""
        results: dict[str, Any] = {"alias": self.task}
        for one, score, error in self.scores():
            results |= {f"exact_match,{one}": score, f"exact_match_stderr,{one}": error}
        done = len(next(iter(self.right.values())))
        return {
            SYNTHETIC: True,
            "results": {self.task: results},
            "versions": {self.task: self.version},
            "n-shot": {self.task: self.fewshot},
            "n-samples": {self.task: {"original": self.questions, "effective": done}},
        }

    def samples(self) -> Iterator[dict[str, Any]]:
        """What is logged of each answer."""
        for one, answers in self.right.items():
            for number, good in enumerate(answers):
                said = "A" if good else "B"
                yield {
                    SYNTHETIC: True,
                    "doc_id": number,
                    "target": "A",
                    "resps": [[f"Answer: {said}"]],
                    "filtered_resps": [said],
                    "filter": one,
                    "metrics": ["exact_match"],
                    "doc_hash": hashlib.sha256(f"{self.task}/{number}".encode()).hexdigest(),
                    "target_hash": hashlib.sha256(b"A").hexdigest(),
                    "exact_match": 1.0 if good else 0.0,
                }

    def table(self) -> str:
        """The scores as they are printed."""
        wide, width = len(self.task), max(len("Filter"), *map(len, self.right))
        lines = [
            f"|{'Tasks':<{wide}}|Version|{'Filter':<{width}}|n-shot|  Metric   "
            "|   |Value |   |Stderr|",
            f"|{'-' * wide}|------:|{'-' * width}|-----:|-----------|---|-----:|---|-----:|",
        ]
        first = f"|{self.task}|{self.version:>7g}"
        for one, score, error in self.scores():
            lines.append(
                f"{first}|{one:<{width}}|{self.fewshot:>6}|exact_match"
                f"|↑  |{score:.4f}|±  |{error:.4f}|"
            )
            first = f"|{'':<{wide}}|{'':7}"
        return "\n".join(lines)


def answered_right(
    playbook: Playbook, task: str, filters: Sequence[str], asked: int, done: int
) -> dict[str, Sequence[bool]]:
    """Filter → which of the first `done` of the questions asked were answered right."""
    names = {one: accuracy_name(task, "exact_match", one) for one in filters}
    return {one: playbook.answers(task, name, asked)[:done] for one, name in names.items()}
