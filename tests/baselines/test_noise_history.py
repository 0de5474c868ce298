"""The noise history: what is kept of a run is read again, and what nobody should trust is not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tables import each

from perfgate.baselines.noise_history import (
    MOST_FILES,
    MOST_STARTS,
    NoiseRun,
    NoiseSeries,
    content_of,
    history_folder,
    read,
    read_all,
    save,
)
from perfgate.baselines.stored_json import with_hash
from perfgate.core.errors import InputError

METRIC = "output_throughput"
SERIES = NoiseSeries(
    scenario="small-serve",
    probe="c1",
    content=content_of({"cpu": "Grace"}),
    build="abc123",
    values={METRIC: (100.0, 101.5), "ttft_mean_ms": (5.0, 5.25)},
    machine={"cpu": "Grace", "cores": "72"},
    node="n7",
)
RUN = NoiseRun("8xH200", "run-1", "2026-11-20T08:00:00+00:00", (SERIES,))


@pytest.fixture(autouse=True)
def checkout(suite_root: Path) -> Path:
    return suite_root


def test_what_is_kept_is_read_again(checkout: Path) -> None:
    path = save(RUN, own=False)
    assert path == checkout / "baselines" / "noise" / "8xH200" / "history" / "run-1.json"
    assert read(path) == RUN
    changed = replace(RUN, at="2026-11-21T08:00:00+00:00")
    save(changed, own=False)  # the same run counts once
    assert read_all("8xH200", own=False) == ([changed], [])
    assert read_all("8xH200", own=True) == read_all("cpu", own=False) == ([], [])


def test_answers_scores_and_what_is_too_long_are_not_kept() -> None:
    values = {
        METRIC: tuple(float(one) for one in range(1, 200)),
        "accuracy:sums:exact_match:strict": (0.5, 0.5),
    }
    path = save(replace(RUN, series=(replace(SERIES, values=values),)), own=False)
    (one,) = read(path).series
    assert list(one.values) == [METRIC]
    assert len(one.values[METRIC]) == MOST_STARTS


def test_a_secret_in_a_name_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "ghp_" + "a1B2" * 9  # pragma: allowlist secret
    path = save(replace(RUN, series=(replace(SERIES, node=f"x-{secret}"),)), own=False)
    assert secret not in path.read_text()


@each("name", ["../up", "a/b", ".hidden", "", "x" * 300, "a\nb"])
def test_a_run_whose_name_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a file"):
        save(replace(RUN, run=name), own=False)


def test_the_newest_files_are_read_and_no_drafts() -> None:
    folder = history_folder("8xH200", own=False)
    folder.mkdir(parents=True)
    for number in range(MOST_FILES + 5):
        (folder / f"run-{number:04}.json").write_text("{")
    (folder / ".run-9999.json.abc").write_text("{")
    (folder / ".run-9999.json").write_text("{")
    found, unread = read_all("8xH200", own=False)
    assert (found, len(unread)) == ([], MOST_FILES)
    assert unread[0].startswith("run-0005.json: ")


def edited(change: Callable[[dict[str, Any]], object], *, hashed: bool = True) -> Path:
    path = save(RUN, own=False)
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(with_hash(plain) if hashed else plain))
    return path


def of_series(plain: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plain["series"][0]
    return found


@each(
    ("change", "field"),
    [
        (lambda plain: plain.update(schema_version=2), "schema_version"),
        (lambda plain: plain.update(hardware="8xB200"), "hardware"),
        (lambda plain: plain.update(run="run-2"), "run"),
        (lambda plain: plain.update(synthetic=True), "synthetic"),
        (lambda plain: of_series(plain).update(node=0), "series[0].node"),
        (lambda plain: of_series(plain)["values"].update({METRIC: [-1.0]}), None),
        (lambda plain: of_series(plain)["values"].update({METRIC: ["1"]}), None),
        (lambda plain: of_series(plain)["values"].update({METRIC: [1.0] * 65}), None),
        (lambda plain: of_series(plain).update(offsets={METRIC: 0.1}), "series[0].offsets"),
        (lambda plain: plain.update(series=[0] * 2001), "series"),
    ],
)
def test_a_damaged_file_is_refused_and_left_out_of_the_history(
    change: Callable[[dict[str, Any]], object], field: str | None
) -> None:
    path = edited(change)
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.file == path
    assert field is None or caught.value.field == field
    found, (told,) = read_all("8xH200", own=False)
    assert found == []
    assert told == f"run-1.json: {caught.value.problem}"


def test_a_number_changed_by_hand_is_refused() -> None:
    path = edited(lambda plain: of_series(plain)["values"].update({METRIC: [1, 2]}), hashed=False)
    with pytest.raises(InputError, match="the noise history was edited by hand"):
        read(path)


@each("text", ["", "{", "[]", "null", '{"schema_version": 1}', "[" * 5000])
def test_what_is_no_history_at_all_is_left_out(text: str) -> None:
    path = save(RUN, own=False)
    path.write_text(text)
    assert read_all("8xH200", own=False)[0] == []
