"""What a probe's state says to people."""

from perfgate.campaign.probe_state import not_reported
from perfgate.core.measurement import Measurement


def test_settings_that_a_report_does_not_show_are_said_once() -> None:
    starts = [
        Measurement({}, {"asked_not_reported": ["kv_cache_fraction"]}),
        Measurement({}, {"asked_not_reported": ["kv_cache_fraction", "ep"]}),
    ]
    assert list(not_reported(starts)) == [
        "the report does not show kv_cache_fraction, ep: that it was in force as asked is not "
        "established"
    ]


def test_a_report_that_shows_all_says_nothing() -> None:
    assert not list(not_reported([]))
    assert not list(not_reported([Measurement({}, {"ep": 8})]))
