"""Variables in scripts: only values that are known to say nothing are written."""

import subprocess

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.script_variables import ASKED, export_line


@each(
    ("name", "value", "line"),
    [
        ("TRTLLM_DG_ENABLED", "1", "export TRTLLM_DG_ENABLED=1"),
        ("NCCL_DEBUG", "$(x)", "export NCCL_DEBUG='$(x)'"),
        ("PERFGATE_PROBE", "c1", "export PERFGATE_PROBE=c1"),
        ("ANY_NAME", "", "export ANY_NAME=''"),
        ("MY_SWITCH", "1", f'export MY_SWITCH="${{MY_SWITCH:?{ASKED}}}"'),
        ("MY_SIGNING", "k3y", f'export MY_SIGNING="${{MY_SIGNING:?{ASKED}}}"'),
        ("VLLM_API_KEY", "k3y", f'export VLLM_API_KEY="${{VLLM_API_KEY:?{ASKED}}}"'),
        ("LLAMA_X", "api_key=k3y", f'export LLAMA_X="${{LLAMA_X:?{ASKED}}}"'),
    ],
)
def test_what_is_not_known_to_be_harmless_is_asked_for(name: str, value: str, line: str) -> None:
    assert export_line(name, value) == line


@each("name", ["", "A B", "A=1", "A\n", "1A", "A;x", "BASH_FUNC_x%%", "É"])
def test_a_name_is_one_that_a_shell_knows(name: str) -> None:
    with pytest.raises(InputError, match="not a variable's name"):
        export_line(name, "1")


def test_a_script_goes_on_with_what_is_set_and_ends_without_it() -> None:
    script = f"set -e\n{export_line('MY_SWITCH', 'on')}\necho $MY_SWITCH"
    done = subprocess.run(
        ["sh", "-c", script], env={"MY_SWITCH": "off"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "off\n"
    failed = subprocess.run(["sh", "-c", script], env={}, capture_output=True, check=False)
    assert failed.returncode != 0
    assert ASKED in failed.stderr.decode()
