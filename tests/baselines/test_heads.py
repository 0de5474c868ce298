"""A choice among many baselines reads what their files say of themselves, and believes no edit."""

import json
import os
from pathlib import Path

import pytest
from building import baseline, entry, of_commit
from tables import each

from perfgate.baselines import Baseline, Store, suite_store
from perfgate.baselines import store as stores
from perfgate.baselines.file import head_of, read, read_head
from perfgate.core.errors import InputError
from perfgate.engines.base import EngineBuild

BUILD = EngineBuild("llama.cpp", "1.3.0", "x")


@pytest.fixture
def store(suite_root: Path) -> Store:
    return suite_store()


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_says_what_the_whole_file_says(store: Store) -> None:
    path = store.save(baseline(entries={"c1": entry(1.0), "c4": entry(2.0)}, change="first"))
    assert read_head(path) == head_of(read(path))
    assert read_head(path).labels == {"c1", "c4"}


@each(
    "changes",
    [
        {"engine": {"name": "llama.cpp", "version": "9.9", "commit": "abc123"}},
        {"accepted": {"by": "x", "at": "2026-11-05T12:00:00Z", "reason": "x", "change": "none"}},
        {"retired": {"by": "x", "at": "2026-11-05T12:00:00Z", "reason": "y"}},
        {"probes": {"c1": "0" * 64}},
        {"scenario": "other"},
        {"schema_version": 4},
        {"extra": 1},
    ],
)
def test_an_edited_head_is_never_chosen_from(store: Store, changes: dict[str, object]) -> None:
    """Not even where another one would be: a changed version or date decides which."""
    path = store.save(baseline(), merge=False)
    store.save(baseline(engine=EngineBuild("llama.cpp", "1.2.5", "nearer")))
    assert store.choose("cpu", "small-serve", BUILD) is not None
    edit(path, **changes)
    with pytest.raises(InputError) as caught:
        store.choose("cpu", "small-serve", BUILD)
    assert caught.value.file == path


@each("content", [b"", b"{", b"[]", b'{"schema_version": 3}', b"\xff"])
def test_something_else_is_refused_as_when_it_is_read_in_full(store: Store, content: bytes) -> None:
    path = store.save(baseline(), merge=False)
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_head(path)
    assert caught.value.file == path


def test_edited_numbers_are_refused_where_they_are_used(store: Store) -> None:
    for commit, version in (("a", "1.0"), ("b", "1.1")):
        store.save(baseline(engine=EngineBuild("llama.cpp", version, commit)))
    nearest = store.path("cpu", "small-serve", "b")
    nearest.write_text(nearest.read_text().replace("101.0", "110.0"))
    with pytest.raises(InputError, match="edited by hand") as caught:
        store.choose("cpu", "small-serve", BUILD)
    assert (caught.value.file, caught.value.field) == (nearest, "entries.c1")


def test_only_what_is_compared_with_is_read_in_full(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        of = EngineBuild("llama.cpp", f"1.{number}", f"c{number}")
        store.save(baseline(engine=of, entries={"c1": entry(*map(float, range(1, 6)))}))
    asked: list[Path] = []

    def reading(path: Path) -> Baseline:
        asked.append(path)
        return read(path)

    monkeypatch.setattr(stores, "read", reading)
    chosen = store.choose("cpu", "small-serve", EngineBuild("llama.cpp", "2.0", "x"))
    assert chosen is not None
    assert len(chosen.window) == 40
    found = chosen.entry("c1")
    assert found is not None
    assert len(found.runs) == 30
    assert chosen.entry("c64") is None
    assert [path.stem for path in asked] == ["c39", "c38", "c37", "c36", "c35", "c34"]


def test_a_file_that_changed_is_read_again_though_size_and_time_are_as_before(store: Store) -> None:
    path = store.save(of_commit("a", reason="first"))
    assert store.choose("cpu", "small-serve", BUILD) is not None
    seen = path.stat()
    content = path.read_text()
    path.write_text(content.replace('"reason": "first"', '"reason": "secon"'))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    with pytest.raises(InputError, match="edited by hand"):
        store.choose("cpu", "small-serve", BUILD)
