"""The tables of what a run folder holds are those of the code that writes it."""

from typing import get_args

from ci.maintenance.reference_tables import FILES, RECORD_KINDS
from perfgate.reports.formats.base import report_format
from perfgate.runs.record import AnyRecord
from perfgate.runs.run_folder import _OWN_FILES


def test_every_kind_of_record_says_what_it_is() -> None:
    assert len(RECORD_KINDS) == len(get_args(AnyRecord))
    for kind, text in RECORD_KINDS.items():
        assert kind
        assert len(text) > 20, kind


def test_every_file_of_the_folders_own_is_in_the_table() -> None:
    assert FILES.keys() >= {*_OWN_FILES}


def test_the_page_of_the_run_has_the_name_that_its_format_gives_it() -> None:
    assert report_format["html"]().file in FILES
