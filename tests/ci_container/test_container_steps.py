"""The build stage of the container file, done in a folder that stands for the image.

By night alone: it installs all packages. On each push ci/maintenance/wheel.sh installs them.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from sizes import IS_NIGHTLY
from test_container_files import FOLDER, ROOT, Step, steps

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(not IS_NIGHTLY, reason="installs all packages: make nightly"),
]


def kept(folder: Path) -> list[Path]:
    """What the builder is given of `folder`, by containerignore."""
    lines = (FOLDER / "containerignore").read_text().splitlines()
    return [one for line in lines if line.startswith("!") for one in sorted(folder.glob(line[1:]))]


def copy(step: Step, image: Path) -> None:
    """Do a COPY."""
    *sources, target = step.rest.split()
    to = image / target.lstrip("/")
    to.mkdir(parents=True, exist_ok=True)
    for source in kept(ROOT) if sources == ["."] else [ROOT / one for one in sources]:
        place = to / (source.relative_to(ROOT) if sources == ["."] else source.name)
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)


def test_the_steps_of_the_harness_make_an_environment_of_its_own(tmp_path: Path) -> None:
    text = (FOLDER / "Containerfile").read_text()
    build = text[: text.index("\nFROM", text.index("AS build"))]
    last = ""
    for step in steps(build):
        if step.word == "COPY":
            copy(step, tmp_path)
        elif step.word == "RUN":
            script = step.rest.replace("/opt/", f"{tmp_path}/opt/")
            done = subprocess.run(
                ("sh", "-ec", script),
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
            last = done.stdout
    assert f"installed in {tmp_path}/opt/perfgate/lib/" in last
    done = subprocess.run(
        (tmp_path / "opt" / "perfgate" / "bin" / "perfgate", "scenarios", "list", "--gpu", "B200"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "b200-r1-fp4-min-latency" in done.stdout, done.stderr
