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


def test_secrets_in_addresses_arguments_and_files_are_asked_for(tmp_path: Path) -> None:
    command = Command(
        ("serve", "--api-key", "-k1", "--url", "https://a:b@hub"),
        env={"HF_ENDPOINT": "https://me:pass@hub"},
        files={"x.yaml": "api_key: abc"},
    )
    text = command.as_shell()
    assert not [one for one in ("-k1", "a:b@", "me:pass", "abc") if one in text]
    script = tmp_path / "run.sh"
    script.write_text(text)
    (tmp_path / "x.yaml").write_text("mine")
    environment = {"PATH": f"{tmp_path}:/bin", "HF_ENDPOINT": "here"}
    (tmp_path / "serve").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "serve").chmod(0o755)

    def run(secrets: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", str(script)],
            cwd=tmp_path,
            env={**environment, **secrets},
            capture_output=True,
            text=True,
            check=False,
        )

    refused = run({"SECRET_2": "-k1"})
    assert refused.returncode != 0
    assert "SECRET_4: https://***@hub" in refused.stderr
    done = run({"SECRET_2": "-k1", "SECRET_4": "https://a:b@hub"})
    assert done.stdout.split() == ["--api-key", "-k1", "--url", "https://a:b@hub"]
