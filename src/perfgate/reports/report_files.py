"""Report files: the formats of a report as files of a folder, all of them or none."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perfgate.core.durable_files import make_folder, sync_folder, write_errors_named, write_text
from perfgate.reports.formats.base import ReportContext, report_format
from perfgate.reports.run_report import RunReport
from perfgate.reports.shown import shown


def write_formats(
    folder: Path, names: Sequence[str], report: RunReport, context: ReportContext
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
    formats = [report_format[name]() for name in names]
    report, context = shown(report), shown(context)
    texts = {one.file: one.text(report, context) for one in formats}
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
