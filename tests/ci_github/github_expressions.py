"""GitHub's own evaluator of expressions, in a process of node that answers line by line."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PIPELINES = Path(__file__).parents[2] / "ci/pipelines"
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_STATUS_FUNCTION = re.compile(r"\b(always|success|failure|cancelled)\s*\(", re.IGNORECASE)


def node() -> str | None:
    """The program node, where it and the packages of ci/pipelines are there."""
    there = (PIPELINES / "node_modules/@actions/expressions").is_dir()
    return shutil.which("node") if there else None


class Expressions:
    """Evaluates expressions as GitHub does; to be closed."""

    def __init__(self) -> None:
        self._node = subprocess.Popen(
            (node() or "node", PIPELINES / "github_expressions.mjs"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process of node."""
        with self._node:
            assert self._node.stdin
            self._node.stdin.close()

    def answer(self, expression: str, contexts: Mapping[str, Any], status: str) -> dict[str, Any]:
        """The expression's `value`, its `text`, and whether it is `true`."""
        assert self._node.stdin
        assert self._node.stdout
        asked = {"expression": expression.strip(), "contexts": contexts, "status": status}
        print(json.dumps(asked), file=self._node.stdin, flush=True)
        said: dict[str, Any] = json.loads(self._node.stdout.readline())
        assert "error" not in said, (expression, said)
        return said

    def value(self, text: Any, contexts: Mapping[str, Any], status: str = "success") -> Any:
        """A value of a file with its expressions evaluated: text, unless it is one and no more."""
        if isinstance(text, dict):
            return {name: self.value(one, contexts, status) for name, one in text.items()}
        if isinstance(text, list):
            return [self.value(one, contexts, status) for one in text]
        if not isinstance(text, str):
            return text
        whole = _EXPRESSION.fullmatch(text.strip())
        if whole and text.count("${{") == 1:
            return self.answer(whole[1], contexts, status)["value"]
        return _EXPRESSION.sub(lambda one: self.answer(one[1], contexts, status)["text"], text)

    def text(self, text: Any, contexts: Mapping[str, Any], status: str = "success") -> str:
        """The same, as an environment variable has it."""
        if isinstance(text, bool):
            return str(text).lower()
        return _EXPRESSION.sub(lambda one: self.answer(one[1], contexts, status)["text"], str(text))

    def holds(self, condition: Any, contexts: Mapping[str, Any], status: str) -> bool:
        """Whether an `if:` holds; one that asks for no status holds after success alone."""
        if condition is None:
            return status == "success"
        text = str(condition).strip().removeprefix("${{").removesuffix("}}")
        if not _STATUS_FUNCTION.search(text):
            text = f"success() && ({text})"
        return bool(self.answer(text, contexts, status)["true"])
