"""The lm_eval tasks that a repository brings along: where they are, and how they are scored."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from perfgate.core.paths import packaged, repository, require_own

# `metric_list` and `filter_list` of `lm_eval/tasks/gsm8k/gsm8k.yaml`, lm_eval 0.4.
_GSM8K = frozenset({"exact_match:strict-match", "exact_match:flexible-extract"})


def folder_of(task: str) -> Path | None:
    """The folder of tasks that has this one, with its data; None: it is lm_eval's own.

    That of the gate repository comes first, then the one that perfgate brings along.
    """
    return next((folder for folder in _folders() if (folder / task).is_dir()), None)


def known_scores() -> Mapping[str, frozenset[str]]:
    """Task → its scores, ``<metric>:<filter>``, where they are known before it is measured."""
    found = {"gsm8k": _GSM8K}
    for folder in reversed(_folders()):
        for file in folder.glob("*/*.yaml"):
            if file.stem == file.parent.name:
                found.pop(file.stem, None)
                if scores := _scores(file):
                    found[file.stem] = scores
    return found


def _folders() -> tuple[Path, ...]:
    own, brought = (root / "fixtures" / "lm_eval_tasks" for root in (repository(), packaged()))
    return (require_own(own, all_of_it=True), brought)  # a task may be a program


def _scores(file: Path) -> frozenset[str]:
    """The scores that a task's file names; none: another file has them, or it is no task's."""
    try:
        # The loader is a safe one: it makes plain values only.
        task = yaml.load(file.read_text(encoding="utf-8"), _TaskLoader)  # noqa: S506
        filters = task.get("filter_list", [{"name": "none"}])
        return frozenset(
            f"{metric['metric']}:{one['name']}" for metric in task["metric_list"] for one in filters
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        return frozenset()  # lm_eval itself says what is wrong with a task


class _TaskLoader(yaml.SafeLoader):
    """Reads plain values; functions that a task names (``!function``) are read as nothing."""


def _nothing(_loader: Any, _tag: str, _node: yaml.Node) -> None:
    return None


_TaskLoader.add_multi_constructor("!", _nothing)
