"""Accounts: fresh starts counted as they were made, and as they would be without sharing."""

from perfgate.campaign.start_counts import Account
from perfgate.runs.record import GroupSeconds, GroupStarts


def test_a_start_that_serves_three_probes_saves_two() -> None:
    account = Account(planned=1)
    start = account.begin("new", serves=True)
    for _ in range(3):
        start.measured(offline=False)
    start.ready_s, start.spent_s = 100.0, 160.0
    starts = GroupStarts(planned=1, made=1, without_sharing=3, again=0, controls=0)
    assert account.totals() == (starts, GroupSeconds(spent=160.0, starting=100.0, saved=200.0))


def test_served_and_offline_probes_of_one_start_are_told_apart() -> None:
    account = Account()
    start = account.begin("new", serves=True)
    for offline in (True, False, False):
        start.measured(offline=offline)
    starts, _ = account.totals()
    assert (starts.made, starts.without_sharing) == (2, 3)


def test_a_start_that_never_was_ready_saves_nothing_and_tells_no_time() -> None:
    account = Account()
    account.begin("new", serves=True).spent_s = 60.0
    starts, seconds = account.totals()
    assert starts.made == starts.without_sharing == 1
    assert seconds == GroupSeconds(spent=60.0, starting=0.0, saved=0.0)


def test_the_time_saved_is_that_of_the_starts_that_became_ready() -> None:
    account = Account()
    for ready_s in (None, 10.0, 30.0):
        start = account.begin("new", serves=True)
        start.ready_s = ready_s
        start.measured(offline=False)
        start.measured(offline=False)
    assert account.totals()[1].saved == 3 * 20.0


def test_a_start_is_made_again_after_a_wasted_one_of_its_role() -> None:
    account = Account()
    account.begin("reference", serves=True)
    account.ended(wasted=True)
    assert not account.begin("new", serves=True).again
    account.ended(wasted=False)
    assert account.begin("reference", serves=True).again
    assert account.totals()[0].again == 1


def test_what_a_start_takes_on_average() -> None:
    account = Account()
    assert account.mean_s() is None
    for seconds in (10.0, 20.0):
        account.begin("new", serves=True).spent_s = seconds
    assert account.mean_s() == 15.0
