"""The container files, read as a builder reads them: sources, hashes, scripts, user, secrets."""

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from tables import each

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "ci" / "container"
FILES = sorted(FOLDER.glob("Containerfile*"))
_SECRET = re.compile(r"TOKEN|PASSWORD|SECRET|API_?KEY|CREDENTIAL|INDEX_URL", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """One instruction: its word, as `RUN`, and what follows, lines joined."""

    word: str
    rest: str


def steps(text: str) -> list[Step]:
    """The instructions of a file, in order."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Step(*line.split(maxsplit=1)) for line in joined.splitlines()]


def problems(text: str) -> list[str]:
    """What is wrong with a file, one line each."""
    found = []
    all_steps = steps(text)
    froms = [step.rest for step in all_steps if step.word == "FROM"]
    if {one.split()[0] for one in froms} != {"${BASE_IMAGE}:${BASE_TAG}${BASE_DIGEST}"}:
        found.append("a base image that no build argument gives")
    last = all_steps[max(n for n, step in enumerate(all_steps) if step.word == "FROM") :]
    users = [step.rest for step in last if step.word == "USER"]
    if not users or not users[-1].isdecimal() or users[-1] == "0":
        found.append("its user is root, or one whose number is not known")
    for step in all_steps:
        if step.word in ("ARG", "ENV") and _SECRET.search(step.rest):
            found.append(f"a secret in {step.word} {step.rest}")
        if step.word == "ADD":
            found.append("ADD takes what it is given from anywhere")
        if step.word == "RUN" and " pip install " in step.rest:
            local = "/opt/perfgate-source" in step.rest.split()
            if not local and "--require-hashes" not in step.rest:
                found.append(f"installs without hashes: {step.rest}")
            if not {"--no-deps", "--no-build-isolation", "--no-cache-dir"} <= set(
                step.rest.split()
            ):
                found.append(f"installs what is not listed: {step.rest}")
    if any(step.word in ("COPY", "RUN") and "pip" in step.rest for step in last):
        found.append("the last stage installs")
    return found


def test_nothing_is_wrong_with_a_file() -> None:
    assert {file.name: problems(file.read_text()) for file in FILES} == {
        **{"Containerfile": [], "Containerfile.client": [], "Containerfile.lm_eval": []}
    }


@each(
    "old, new",
    [
        ("USER 10001", "USER 0"),
        ("USER 10001", "USER root"),
        ("--require-hashes ", ""),
        ("--no-deps ", ""),
        ("ARG BASE_TAG", "ARG HF_TOKEN\nARG BASE_TAG"),
        ("USER 10001", "RUN python3 -m pip install x\nUSER 10001"),
        ("FROM ${BASE_IMAGE}:${BASE_TAG}${BASE_DIGEST}\n", "FROM debian\n"),
    ],
)
def test_what_is_wrong_is_found(old: str, new: str) -> None:
    text = (FOLDER / "Containerfile").read_text()
    assert old in text
    assert problems(text.replace(old, new))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_copied_is_there_and_not_left_out(file: Path) -> None:
    kept = [
        line[1:]
        for line in (FOLDER / "containerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = [
        word
        for step in steps(file.read_text())
        if step.word == "COPY" and not step.rest.startswith("--from")
        for word in step.rest.split()[:-1]
        if word != "."
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).is_file()
        assert any(Path(name).match(pattern) for pattern in kept), name


def test_what_the_wheel_takes_is_not_left_out() -> None:
    plain = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = plain["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    lines = (FOLDER / "containerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    left_out = [one for one in named if not any(fnmatchcase(one, pattern) for pattern in kept)]
    assert len(named) > 5
    assert left_out == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_shellcheck_finds_nothing_in_what_is_run(file: Path) -> None:
    scripts = [step.rest for step in steps(file.read_text()) if step.word == "RUN"]
    assert len(scripts) >= 4
    for script in scripts:
        done = subprocess.run(
            (Path(sys.executable).with_name("shellcheck"), "--shell=sh", "-"),
            input=f"{script}\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["aiperf.txt", "lm_eval.txt"])
def test_every_package_has_hashes_and_the_version_that_is_tested(name: str) -> None:
    text = (FOLDER / name).read_text()
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==([^\s;]+)", text, re.MULTILINE))
    assert len(pins) > 50
    blocks = re.split(r"\n(?=[A-Za-z])", re.sub(r"(?m)^#.*\n", "", text).strip())
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    tested = dict(
        re.findall(
            r"^([A-Za-z0-9._-]+)==([^\s;]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE
        )
    )
    assert [one for one in pins.keys() & tested.keys() if pins[one] != tested[one]] == []
