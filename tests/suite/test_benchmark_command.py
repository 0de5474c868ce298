"""The command `pytest-benchmark` works in the checkout, whose settings make warnings errors."""

import subprocess
import sys
from pathlib import Path

from checkouts import ROOT
from sessions import inherited, untraced


def test_compare_ends_without_a_traceback(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("pytest-benchmark")
    done = subprocess.run(
        (str(program), "--storage", tmp_path.as_uri(), "compare"),
        cwd=ROOT,
        env=untraced(inherited()),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
