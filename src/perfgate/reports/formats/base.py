"""Formats: one class each, which makes a text of a run's report and does nothing else.

Records are redacted when they are written, by the process that knew the secrets. A report is made
elsewhere, of folders that came over a network: what is a character that a terminal obeys, half of a
character that no file can hold, or a secret of the process that makes the report, ends here.
"""

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec

from perfgate.core.files.durable_files import (
    make_folder,
    sync_folder,
    write_errors_named,
    write_text,
)
from perfgate.core.plain import json_of, to_plain
from perfgate.core.redaction import mask, visible
from perfgate.core.registry import Registry
from perfgate.reports.histories import MetricHistory
from perfgate.reports.run_report import RunReport

T = TypeVar("T")


def shown(value: T) -> T:
    """The same report, or part of one, with all its texts as they may be shown."""
    return msgspec.convert(to_plain(value, text=cache(_text)), type(value))


def indented(value: object) -> str:
    """A value as JSON, a line each; json's own indentation takes ten times as long."""
    return msgspec.json.format(json_of(value), indent=1)


def _text(text: str) -> str:
    return visible(mask(text, by_name=False))


class ReportFormat(ABC):
    """A format.

    Args:
        histories: of the gating metrics, for what shows them; none where nothing is stored.

    Attributes:
        file: name of its file in a folder of reports.
    """

    file: ClassVar[str]

    def __init__(self, histories: Sequence[MetricHistory] = ()) -> None:
        self.histories = histories

    def render(self, report: RunReport) -> str:
        """The report as text. What it shows is hostile: logs, names, texts of YAML."""
        return self.text(shown(report))

    @abstractmethod
    def text(self, report: RunReport) -> str:
        """The text of a report in which `shown` has masked every text."""


report_format: Registry[ReportFormat] = Registry("format", "perfgate.reports.formats")


def write_formats(
    folder: Path, names: Sequence[str], report: RunReport, histories: Sequence[MetricHistory] = ()
) -> list[Path]:
    """Write some formats of a report into a folder, under the names of their files.

    All are made and on disk before the first takes the place of an earlier one: an error, or a
    full disk, leaves what was there. A link of the name of a file is replaced, not followed.

    Returns:
        The files, in the order of `names`.

    Raises:
        InputError: no such format.
        RunError: the folder cannot be written (class ``disk_full`` or ``unwritable``).
    """
    formats = [report_format[name](histories) for name in names]
    report = shown(report)
    texts = {one.file: one.text(report) for one in formats}
    make_folder(folder)
    with (
        write_errors_named(folder),
        tempfile.TemporaryDirectory(prefix=".report-", dir=folder) as aside,
    ):
        for name, text in texts.items():
            write_text(Path(aside) / name, text)
        for name in texts:
            os.replace(Path(aside) / name, folder / name)  # noqa: PTH105 (both are whole paths)
    sync_folder(folder)
    return [folder / one.file for one in formats]
