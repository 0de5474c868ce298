"""`perfgate --version` and `--print-completion`: one line; a script that a real shell takes."""

import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from tables import each

import perfgate
from perfgate.cli.command_parser import SHELLS
from perfgate.cli.main import COMMANDS, main

Capture = pytest.CaptureFixture[str]

COMPLETE = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function=$(complete -p perfgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" perfgate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def printed(words: list[str], capsys: Capture) -> str:
    with pytest.raises(SystemExit, match="0"):
        main(words)
    return capsys.readouterr().out


def test_the_version_is_one_line(capsys: Capture) -> None:
    folder = Path(perfgate.__file__).parent
    assert printed(["--version"], capsys) == (
        f"perfgate {version('perfgate')} "
        f"(Python {platform.python_version()}, installed in {folder})\n"
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_a_script_of_all_commands(shell: str, capsys: Capture) -> None:
    script = printed(["--print-completion", shell], capsys)
    assert all(name in script for name in COMMANDS)
    assert "engine-repo" in script, "an option of a command that was not chosen"


def test_another_shell_is_wrong_usage(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--print-completion", "powershel"])
    assert "choose from" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
class TestBash:
    @pytest.fixture
    def script(self, tmp_path: Path, capsys: Capture) -> Path:
        file = tmp_path / "completion.bash"
        file.write_text(printed(["--print-completion", "bash"], capsys))
        return file

    @each(
        "words, offered",
        [
            (["sce"], {"scenarios"}),
            (["scenarios", "l"], {"list"}),
            (["scenarios", "list", "--mark"], {"--marker", "--markers"}),
            (["judge", "--format", "j"], {"json"}),
            (["parse", "numb"], {"numbers.json"}),
        ],
    )
    def test_it_completes(self, script: Path, words: list[str], offered: set[str]) -> None:
        (script.parent / "numbers.json").touch()
        done = subprocess.run(
            ["bash", "--norc", "-c", COMPLETE, "bash", str(script), "perfgate", *words],
            capture_output=True,
            text=True,
            check=True,
            cwd=script.parent,
        )
        assert set(done.stdout.split()) == offered, done.stderr
