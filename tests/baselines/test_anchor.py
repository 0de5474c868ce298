"""The anchor: pinned by a person, else the last release."""

import json
from pathlib import Path

import pytest
from building import baseline
from tables import each

from perfgate.baselines import Baseline, Retired, Store, candidate_store, suite_store
from perfgate.baselines.decisions import pin_anchor, retire
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild

ROOT = Path(__file__).parents[2]
RETIRED = Retired("Ada", "2026-11-06T08:00:00Z", "wrong clocks")


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


def of(version: str, **changes: object) -> Baseline:
    return baseline(engine=EngineBuild("llama.cpp", version, f"c{version}"), **changes)


BUILD = EngineBuild("llama.cpp", "1.3.0", "x")


def anchored(store: Store) -> tuple[str, str]:
    found = store.anchor("cpu", "small-serve", BUILD)
    assert found is not None
    assert list(found.window) == [found.baseline]
    return found.baseline.engine.version, found.why


def test_is_the_last_release_if_nobody_pinned_one(store: Store) -> None:
    store.save(of("1.3.0rc1"))
    assert store.anchor("cpu", "small-serve", BUILD) is None
    for version in ("1.1.0", "1.2.0", "1.4.0"):
        store.save(of(version))
    assert anchored(store) == ("1.2.0", "newest final release")


def test_is_what_a_person_pinned(store: Store) -> None:
    store.save(of("1.2.0"))
    file = store.save(of("1.3.0rc1"))
    path = pin_anchor(file, by=" Ada ", reason="the loss of 1.3 is accepted")
    assert path not in store.list()
    assert path == store.folder / "cpu" / "small-serve" / "anchor.json"
    version, why = anchored(store)
    assert version == "1.3.0rc1"
    assert why.startswith("pinned by Ada on ")
    assert why.endswith(": the loss of 1.3 is accepted")


@pytest.mark.parametrize(
    ("version", "why"), [("1.2.0", "was retired"), ("1.4.0", "is newer than the build")]
)
def test_a_pinned_one_retired_on_another_branch_or_newer_than_the_build_does_not_count(
    store: Store, version: str, why: str
) -> None:
    store.save(of("1.1.0"))
    pin_anchor(store.save(of(version)), by="Ada", reason="x")
    if why == "was retired":
        store.save(of(version, retired=RETIRED), merge=False)
    told = f"newest final release; the pinned one, c{version}, {why}"
    assert anchored(store) == ("1.1.0", told)


def test_a_pinned_one_without_a_baseline_is_told(store: Store) -> None:
    file = store.save(of("1.2.0"))
    path = pin_anchor(file, by="Ada", reason="x")
    file.unlink()
    with pytest.raises(InputError, match="a commit that has no baseline") as caught:
        store.anchor("cpu", "small-serve", BUILD)
    assert (caught.value.file, caught.value.found) == (path, "c1.2.0")


@each(
    ("change", "field"),
    [
        ({"commit": "c1.1.0"}, "hash"),
        ({"hardware": "8xH200"}, "hardware"),
        ({"schema_version": 2}, "schema_version"),
        ({"by": ""}, "by"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_its_file_edited_or_half_written_is_refused(
    store: Store, change: dict[str, object], field: str
) -> None:
    path = pin_anchor(store.save(of("1.2.0")), by="Ada", reason="x")
    whole = path.read_text()
    path.write_text(json.dumps({**json.loads(whole), **change}))
    with pytest.raises(InputError) as caught:
        store.anchor("cpu", "small-serve", BUILD)
    assert (caught.value.file, caught.value.field) == (path, field)
    path.write_text(whole[:50])
    with pytest.raises(InputError, match="anchor is not JSON"):
        store.anchor("cpu", "small-serve", BUILD)


class TestPinning:
    @each(("by", "reason", "field"), [(" ", "x", "--by"), ("x", "", "--reason")])
    def test_needs_a_person_and_a_reason(
        self, store: Store, by: str, reason: str, field: str
    ) -> None:
        file = store.save(of("1.2.0"))
        with pytest.raises(InputError, match="must not be empty") as caught:
            pin_anchor(file, by=by, reason=reason)
        assert caught.value.field == field

    def test_refuses_what_is_no_baseline(self, store: Store) -> None:
        file = candidate_store().save(of("1.2.0", accepted_by="nobody yet"))
        with pytest.raises(InputError, match="a candidate is not yet a baseline"):
            pin_anchor(file, by="Ada", reason="x")
        file = store.save(of("1.2.0", retired=RETIRED))
        with pytest.raises(InputError, match="the baseline is retired"):
            pin_anchor(file, by="Ada", reason="x")


class TestRetiring:
    def test_refuses_the_pinned_anchor(self, store: Store) -> None:
        store.save(of("1.2.0"))
        file = store.save(of("1.1.0"))
        pin_anchor(file, by="Ada", reason="the last one that customers have")
        before = file.read_bytes()
        with pytest.raises(InputError, match="the anchor cannot be retired") as caught:
            retire(file, by="Grace", reason="x")
        assert "the last one that customers have" in str(caught.value.found)
        assert file.read_bytes() == before

    def test_refuses_the_last_release_until_another_is_pinned(self, store: Store) -> None:
        other = store.save(of("1.1.0"))
        file = store.save(of("1.2.0"))
        store.save(of("1.3.0rc1"))
        with pytest.raises(InputError, match="the anchor cannot be retired") as caught:
            retire(file, by="Grace", reason="x")
        assert caught.value.found == "1.2.0 is the newest final release"
        pin_anchor(other, by="Ada", reason="1.2.0 was measured with wrong clocks")
        retire(file, by="Grace", reason="wrong clocks")
        assert anchored(store)[0] == "1.1.0"

    def test_the_only_one_may_go(self, store: Store) -> None:
        retire(store.save(of("1.2.0")), by="Grace", reason="x")
        assert store.choose("cpu", "small-serve", BUILD) is None

    def test_refuses_candidates_and_what_is_retired(self, store: Store) -> None:
        with pytest.raises(InputError, match="a candidate is not yet a baseline"):
            retire(
                candidate_store().save(of("1.2.0", accepted_by="nobody yet")), by="A", reason="x"
            )
        file = store.save(of("1.2.0", retired=RETIRED))
        with pytest.raises(InputError, match="the baseline is retired") as caught:
            retire(file, by="Grace", reason="again")
        assert "Ada on 2026-11-06: wrong clocks" in str(caught.value.found)
