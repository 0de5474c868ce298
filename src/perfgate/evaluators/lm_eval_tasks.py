"""The lm_eval tasks that a repository brings along: where they are, and how they are scored."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from perfgate.core.errors import InputError
from perfgate.core.paths import packaged, repository, require_own
from perfgate.core.untrusted_files import read_input
from perfgate.scenarios.yaml_limits import LARGEST_FILE, compose

# `metric_list` and `filter_list` of `lm_eval/tasks/gsm8k/gsm8k.yaml`, lm_eval 0.4.
_GSM8K = frozenset({"exact_match:strict-match", "exact_match:flexible-extract"})

_MOST_NAMES = 100  # of metrics or filters that one task has


def folder_of(task: str) -> Path | None:
    """The folder of tasks that has this one, with its data; None: it is lm_eval's own.

    That of the gate repository comes first, then the one that perfgate brings along.

    Raises:
        InputError: it could be another user's: a task may be a program.
    """
    return next((folder for folder in _folders() if require_own(folder / task).is_dir()), None)


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
    return (require_own(own), brought)


def _scores(file: Path) -> frozenset[str]:
    """The scores that a task's file names; none: another file has them, or it is no task's."""
    try:
        root = compose(read_input(file, LARGEST_FILE).decode(), file)
    except (OSError, UnicodeDecodeError, InputError, yaml.YAMLError):
        return frozenset()  # lm_eval itself says what is wrong with a task
    filters = _named("name", _field(root, "filter_list"))
    metrics = _named("metric", _field(root, "metric_list"))
    if len(metrics) > _MOST_NAMES or len(filters) > _MOST_NAMES:
        return frozenset()
    has_filters = _field(root, "filter_list") is not None
    return frozenset(
        f"{metric}:{one}" for metric in metrics for one in (filters if has_filters else ["none"])
    )


def _named(key: str, node: yaml.Node | None) -> list[str]:
    """The names that the mappings of a list have; none where one has no name."""
    listed = node.value if isinstance(node, yaml.SequenceNode) else []
    names = [_field(one, key) for one in listed]
    texts = [name.value for name in names if isinstance(name, yaml.ScalarNode)]
    return texts if len(texts) == len(names) else []


def _field(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """A field of a mapping; what else the file holds (``!function``) is not looked at."""
    fields = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in fields if name.value == key), None)
