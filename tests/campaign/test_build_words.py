"""How a person names another build; nothing is guessed."""

from pathlib import Path

import pytest
from tables import each

from perfgate.campaign.builds.words import parse_source
from perfgate.core.errors import InputError
from perfgate.engines.build_source import BuildSource

DIGEST = "sha256:" + "cd" * 32


@each(
    ("text", "source"),
    [
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc1", "image"),
        ("own:5000/a/b:1", "image"),
        ("docker://me@nvcr.io#nvidia/tensorrt-llm/release:1.2", "image"),
        ("/images/old.sqsh", "image"),
        ("old.sqsh", "image"),
        ("/opt/old", "prefix"),
    ],
)
def test_an_image_or_a_folder(text: str, source: str) -> None:
    assert parse_source(text) == BuildSource(**{source: text})


def test_an_image_by_what_it_is_exactly() -> None:
    assert parse_source(f"a/b@{DIGEST}") == BuildSource(image=f"a/b@{DIGEST}", digest=DIGEST)
    assert parse_source(DIGEST) == BuildSource(image=DIGEST, image_id=DIGEST)


def test_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    assert parse_source("./old").prefix == str(tmp_path / "old")
    assert parse_source("~/old").prefix == "/home/ada/old"
    assert parse_source("./old.sqsh").image == str(tmp_path / "old.sqsh")


def test_several_parts() -> None:
    text = "a:1, /opt/in/it ,PERFGATE_PROGRAM_TRTLLM_SERVE=nice trtllm-serve,engine.settings.tp=2"
    assert parse_source(text) == BuildSource(
        image="a:1",
        prefix="/opt/in/it",
        programs={"PERFGATE_PROGRAM_TRTLLM_SERVE": "nice trtllm-serve"},
        settings=("engine.settings.tp=2",),
    )


def test_the_build_under_test_with_other_settings() -> None:
    assert parse_source("this").is_this
    changed = BuildSource(settings=("engine.settings.cpu_threads=1",))
    assert parse_source("this,engine.settings.cpu_threads=1") == changed
    assert parse_source("engine.settings.cpu_threads=1") == changed


@each("text", ["a:1", f"a/b@{DIGEST}", "/opt/old", "this", "a:1,/opt/b,engine.settings.tp=2"])
def test_its_words_name_it_again(text: str) -> None:
    source = parse_source(text)
    assert parse_source(source.in_words) == source


@each(
    ("text", "told"),
    [
        ("", "a part is empty"),
        ("a:1,", "a part is empty"),
        ("old", r"a folder or an image[^§]*\./old for a folder, old:TAG"),
        ("a b:1", "a folder or an image"),
        ("a/" * 1900 + "!", "a folder or an image"),
        (f"a@{DIGEST[:-1]}", "64 digits"),
        ("a:1,b:2", "image is given twice"),
        ("engine.settings.tp=1,engine.settings.tp=2", r"engine\.settings\.tp is given twice"),
        ("a:1,./b", "the folder is in the image"),
        ("this,/opt/a", "names two builds"),
        ("tp=1", r"KEY=VALUE, e\.g\."),
        ("engine.settings.tp={", "not a setting"),
        ("PERFGATE_PROGRAM_TRTLLM_SERV=/a", "did you mean PERFGATE_PROGRAM_TRTLLM_SERVE"),
        ("PERFGATE_PROGRAM_AIPERF=/a", "measured by the same client"),
        ("PERFGATE_PROGRAM_TRTLLM_SERVE", "CALL"),
        ("/opt/a\x1b[2J", "one line of printable text"),
        ("/" * 5000, "one line of printable text"),
    ],
)
def test_what_names_no_build_or_could_be_two_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        parse_source(text, field="--control")
