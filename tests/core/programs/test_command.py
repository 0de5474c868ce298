import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each, tables_of

from perfgate.core.errors import InputError
from perfgate.core.programs.command import Command
from perfgate.core.programs.environment_variables import ASKED

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


def run(script: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    call = ("/bin/sh", "-c", script)
    return subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_a_script_that_a_person_can_read() -> None:
    env, files = {"CUDA_VISIBLE_DEVICES": "0,1"}, {"extra.yaml": "a: 1\n"}
    command = Command(("trtllm-serve", "my model"), env, files, Path("/runs/one"))
    assert command.as_shell() == (
        "#!/bin/sh\nset -e\ncd /runs/one\nprintf %s 'a: 1\n' > extra.yaml\n"
        "export CUDA_VISIBLE_DEVICES=0,1\nexec trtllm-serve \\\n  'my model'\n"
    )


def test_without_a_folder_it_runs_where_it_is_called_and_a_failing_step_ends_it(tmp_path) -> None:
    assert run(Command(("pwd",)).as_shell(), tmp_path, {}).stdout == f"{tmp_path}\n"
    command = Command(("touch", str(tmp_path / "reached")), cwd=tmp_path / "missing")
    assert run(command.as_shell(), tmp_path, dict(os.environ)).returncode != 0
    assert not (tmp_path / "reached").exists()


@settings(max_examples=15)
@given(words=st.lists(TEXT, max_size=4), value=TEXT, content=TEXT)
def test_the_script_does_exactly_what_the_command_does(words, value, content, tmp_path_factory):
    folder = tmp_path_factory.mktemp("script")
    show = "for word; do printf '%s\\0' \"$word\"; done; printf '%s\\0' \"$TRTLLM_X\""
    argv, files = ("/bin/sh", "-c", show, "sh", *words), {"a file": content}
    command = Command(argv, env={"TRTLLM_X": value}, files=files, cwd=folder)
    script = folder / "run.sh"
    script.write_bytes(command.as_shell().encode())
    env = {**os.environ, "TRTLLM_X": value}  # a value that looks like a secret is asked for
    answer = subprocess.run(["/bin/sh", script], capture_output=True, check=True, cwd="/", env=env)
    assert answer.stdout == b"".join(word.encode() + b"\0" for word in [*words, value])
    assert (folder / "a file").read_bytes() == content.encode()


@each("name, value, line", tables_of("redaction")["shell"])
def test_what_is_not_known_to_be_harmless_is_asked_for(name: str, value: str, line: str) -> None:
    script = Command(("serve",), env={name: value}).as_shell()
    assert line.replace("ASKED", ASKED) in script.splitlines()


@each("name", ["", "A B", "A=1", "A\n", "1A", "A;x", "BASH_FUNC_x%%", "É"])
def test_a_name_that_no_shell_knows_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a variable's name"):
        Command(("serve",), env={name: "1"}).as_shell()


def test_a_script_goes_on_with_what_is_set_and_ends_without_it() -> None:
    script = Command(("/bin/sh", "-c", "echo $MY_SWITCH"), env={"MY_SWITCH": "on"}).as_shell()

    assert run(script, Path("/"), {"MY_SWITCH": "off"}).stdout == "off\n"
    assert f"MY_SWITCH: {ASKED}" in run(script, Path("/"), {}).stderr


def test_secrets_in_addresses_arguments_and_files_are_asked_for(tmp_path: Path) -> None:
    command = Command(
        ("serve", "--api-key", "-k1", "--url", "https://a:b@hub"),
        env={"HF_ENDPOINT": "https://me:pass@hub"},
        files={"x.yaml": "api_key: abc"},
    )
    text = command.as_shell()
    assert not [one for one in ("-k1", "a:b@", "me:pass", "abc") if one in text]
    (tmp_path / "x.yaml").write_text("mine")
    environment = {"PATH": f"{tmp_path}:/bin", "HF_ENDPOINT": "here"}
    (tmp_path / "serve").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "serve").chmod(0o755)

    environment["SECRET_2"] = "-k1"
    refused = run(text, tmp_path, environment)
    assert refused.returncode != 0
    assert "SECRET_4: https://***@hub" in refused.stderr
    done = run(text, tmp_path, {**environment, "SECRET_4": "https://a:b@hub"})
    assert done.stdout.split() == ["--api-key", "-k1", "--url", "https://a:b@hub"]
