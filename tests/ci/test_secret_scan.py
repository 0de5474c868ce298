"""The search for secrets finds one, and does not pass where it searched nothing."""

import random
import string
import subprocess
import sys
from pathlib import Path

import pytest
from tables import each

from ci.maintenance.secret_scan import MADE_UP, main, secrets_in

ROOT = Path(__file__).parents[2]


def token(prefix: str, length: int) -> str:
    letters = random.Random(7).choices(string.ascii_letters + string.digits, k=length)
    return prefix + "".join(letters)


@each(
    "text, kind",
    [
        (f"remote = {token('gh' + 'p_', 36)}", "GitHub Token"),
        (f"AWS {token('AKI' + 'A', 16).upper()}", "AWS Access Key"),
        ("-----BEGIN " + "RSA PRIVATE KEY-----", "Private Key"),
        ("url: https://user:" + "hunter22@hub", "Basic Auth Credentials"),
    ],
)
def test_finds_a_secret(tmp_path: Path, text: str, kind: str) -> None:
    file = tmp_path / "notes.yaml"
    file.write_text(f"# a file\n{text}\n")
    assert list(secrets_in([file])) == [f"{file}:2: {kind}"]
    assert main([str(file)]) == 1


@each("name", MADE_UP)
def test_what_is_left_out_has_secrets_that_are_made_up(name: str) -> None:
    assert list(secrets_in([ROOT / name]))


def test_what_is_no_secret_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.json"
    file.write_text('{"commit": "9f86d081884c7d659a2feaa0c55ad015", "token_count": 1024}\n')
    assert main([str(file)]) == 0
    assert "1 files searched, 0" in capsys.readouterr().out


def test_outside_a_repository_nothing_is_claimed(tmp_path: Path) -> None:
    script = tmp_path / "ci" / "maintenance" / "secret_scan.py"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / "ci" / "maintenance" / "secret_scan.py").read_bytes())
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "nothing was searched" in done.stderr
