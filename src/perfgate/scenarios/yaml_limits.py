"""Limits of YAML: a text is looked at before libyaml makes nodes of it.

libyaml's composer calls itself for each level and ends the process with a segmentation fault at
some 20,000 of them, which a file of 20 kB can hold. The limits are far above what any real file
needs (docs/reference/settings.md).
"""

from pathlib import Path

import yaml

from perfgate.core.errors import InputError

LARGEST_FILE = 2**20  # bytes: some 500 scenarios as they are written by hand
DEEPEST = 50  # levels: a scenario has six
MOST_VALUES = 100_000  # once aliases and defaults stand everywhere they are used
MOST_ERRORS = 500  # of one file that are told
LONGEST_NUMBER = 300  # characters: the largest float has 309 digits

_LIMITS = "(docs/reference/settings.md)"
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is many times faster


def compose(text: str, file: Path | None = None) -> yaml.Node | None:
    """The root node of the one document in `text`; None: it holds nothing.

    Args:
        text: at most `LARGEST_FILE` long.
        file: where it is from, for messages.

    Raises:
        InputError: it is nested too deep.
        yaml.YAMLError: it is not YAML.
    """
    if _may_be_deep(text):
        _require_shallow(text, file)
    loader = Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    return root


def too_many_values(count: int, file: Path, repeated_by: str) -> InputError:
    """The error of a file of more than `MOST_VALUES`, its aliases or defaults repeated."""
    return InputError(
        "too many values",
        file=file,
        found=f"{count:,} values, counting each time what {repeated_by} repeat",
        expected=f"at most {MOST_VALUES:,} {_LIMITS}",
    )


def _may_be_deep(text: str) -> bool:
    """Whether it cannot be excluded at a glance; of a file that people write it can.

    A block on each level begins in a column of its own, but a list in a mapping may share its
    column; a bracket can open a list with a mapping in it.
    """
    longest = max(map(len, text.split("\n")))
    return 2 * (longest + text.count("[") + text.count("{")) > 2000


def _require_shallow(text: str, file: Path | None) -> None:
    depth = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise InputError(
                "nested too deep",
                file=file,
                line=event.start_mark.line + 1 if event.start_mark else None,
                found=f"more than {DEEPEST} levels",
                expected=f"at most {DEEPEST} levels {_LIMITS}",
            )
