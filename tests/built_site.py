"""The site of docs/, built as `make docs` builds it, into a folder of a test's own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def built_site(folder: Path) -> str:
    """Build the site into `folder`; what mkdocs said."""
    done = subprocess.run(
        (sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)),
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"make docs: a page or a link is amiss\n{done.stdout}"
    return done.stdout
