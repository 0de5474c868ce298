"""The picture of a report in README.md: rehearse two scenarios, one slowed down; open the page.

    .venv/bin/python -m ci.maintenance.readme_picture      writes docs/report.png; needs chromium

The numbers come from mock programs, and the page says so. Exit status: 0; 1 if no picture was made.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "report.png"
SIZE = (1000, 760)

_SCENARIOS = "h200 and offline and not smoke"
_DOCUMENTED = "h200-r1-fp8-min-latency or h200-r1-fp8-max-throughput"
_SLOWER = "scale:h200-r1-fp8-max-throughput:output_throughput=0.8"
_REGRESSION = 1


def main() -> int:
    """Make the page and its picture."""
    browser = shutil.which("chromium")
    if browser is None:
        print("there is no chromium on PATH; ci/browser/packages.sh installs it")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        rehearse = [sys.executable, "-m", "pytest", "-m", _SCENARIOS, "-k", _DOCUMENTED]
        rehearse += ["--rehearse-fault", _SLOWER, "--html", "--run-dir", str(run)]
        if (status := _run(rehearse)) != _REGRESSION:
            print(f"the rehearsal ended with {status}, not {_REGRESSION}")
            return 1
        picture = Path(folder) / "report.png"
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        size = f"--window-size={SIZE[0]},{SIZE[1]}"
        page = (run / "report.html").as_uri()
        _run([browser, *options, size, f"--screenshot={picture}", page])
        if not picture.is_file():
            print(f"chromium made no picture of {page}")
            return 1
        shutil.move(picture, PICTURE)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size // 1000} kB")
    return 0


def _run(command: Sequence[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
