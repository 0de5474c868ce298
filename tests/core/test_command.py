import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.command import Command

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


def test_a_script_that_a_person_can_read() -> None:
    command = Command(
        ("trtllm-serve", "my model", "--port", "8000"),
        env={"CUDA_VISIBLE_DEVICES": "0,1"},
        files={"extra.yaml": "a: 1\n"},
        cwd=Path("/runs/one"),
    )
    assert command.as_shell() == (
        "#!/bin/sh\n"
        "set -e\n"
        "cd /runs/one\n"
        "printf %s 'a: 1\n"
        "' > extra.yaml\n"
        "export CUDA_VISIBLE_DEVICES=0,1\n"
        "exec trtllm-serve \\\n"
        "  'my model' \\\n"
        "  --port \\\n"
        "  8000\n"
    )


def test_without_a_folder_it_runs_where_it_is_called(tmp_path: Path) -> None:
    answer = subprocess.run(
        ["/bin/sh"],
        input=Command(("pwd",)).as_shell().encode(),
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert answer.stdout.decode().strip() == str(tmp_path)


@given(words=st.lists(TEXT, max_size=4), value=TEXT, content=TEXT)
def test_the_script_does_exactly_what_the_command_does(
    words: list[str], value: str, content: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("script")
    show = "for word; do printf '%s\\0' \"$word\"; done; printf '%s\\0' \"$VALUE\""
    command = Command(
        ("/bin/sh", "-c", show, "sh", *words),
        env={"VALUE": value},
        files={"a file": content},
        cwd=folder,
    )
    script = folder / "run.sh"
    script.write_bytes(command.as_shell().encode())
    answer = subprocess.run(["/bin/sh", str(script)], capture_output=True, check=True, cwd="/")
    assert answer.stdout == b"".join(word.encode() + b"\0" for word in [*words, value])
    assert (folder / "a file").read_bytes() == content.encode()


def test_a_failing_step_ends_the_script(tmp_path: Path) -> None:
    command = Command(("touch", str(tmp_path / "reached")), cwd=tmp_path / "missing")
    answer = subprocess.run(
        ["/bin/sh"], input=command.as_shell().encode(), capture_output=True, check=False
    )
    assert answer.returncode != 0
    assert not (tmp_path / "reached").exists()


def test_a_secret_is_asked_for_and_not_written_down() -> None:
    script = Command(("serve",), env={"HF_TOKEN": "abc123", "MAX_TOKENS": "7"}).as_shell()
    assert "abc123" not in script
    assert ': "${HF_TOKEN:?a secret, set it yourself}"' in script
    assert "export MAX_TOKENS=7" in script
