"""Otava: run Apache Otava, which lives in an environment of its own because of its hard pins."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

_DRIVER = Path(__file__).with_name("apache_otava_driver.py")

Points = list[tuple[int, float]]


def change_points(python: Path, many: Sequence[Sequence[float]]) -> list[Points]:
    """Change points of each series by Otava with its own defaults (p = 0.001, window 50).

    Args:
        python: interpreter of an environment with `apache-otava`.
        many: series of values.

    Returns:
        for each series, (index, relative change) of its change points, in order.

    Raises:
        subprocess.CalledProcessError: Otava is not there, or failed.
    """
    done = subprocess.run(
        [str(python), str(_DRIVER)],
        input=json.dumps([list(values) for values in many]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [[(index, change) for index, change in points] for points in json.loads(done.stdout)]


def version(python: Path) -> str:
    """The installed version, as pip knows it."""
    words = "import importlib.metadata as m; print(m.version('apache-otava'))"
    done = subprocess.run([str(python), "-c", words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()
