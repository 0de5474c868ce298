"""What perfgate itself costs, as ratios measured in one run, for docs/dev/architecture.md.

Collecting: 2,000 scenarios by the suite, against bare pytest collecting 2,000 parametrised tests
plus parsing the same YAML. Listing: the same scenarios by `perfgate`, against its help. Starting:
a session that collects the suite, against bare pytest. These in CPU time, which other programs on
the machine change least. Own time per test: a whole session with stand-ins for the programs, less
the session's start and less what these programs take alone.
"""

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
STANDINS = ROOT / "tests" / "standins"
SCENARIOS, FILES = 2000, 4
# As the suite calls pytest: without the cache, and without a plugin that AIPerf brings along.
BARE = ("--collect-only", "-p", "no:cacheprovider", "-p", "no:dash")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="pairs of runs, the median counts")
    repeat = parser.parse_args().repeat
    print("| what | measured | compared with | ratio or own time | aim |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        collecting(Path(folder) / "collect", repeat)
        starting(Path(folder) / "start", repeat)
        loading(Path(folder) / "load", repeat)
        own_time(Path(folder) / "own", repeat)
    return 0


def collecting(folder: Path, repeat: int) -> None:
    """Collect and list scenarios of one probe each, against the least that any suite would need."""
    checkout(folder)
    plain = yaml.safe_load((STANDINS / "standin.yaml").read_text())
    one = plain["scenarios"][0]
    one["workload"]["concurrency"] = [1]
    del one["accuracy"]
    one["gate"]["metrics"] = ["output_throughput"]
    scenarios = folder / "scenarios"
    for part in range(FILES):
        numbers = range(part, SCENARIOS, FILES)
        many = [{**one, "id": f"{one['id']}-{number}"} for number in numbers]
        markers = {} if part else {"markers": plain["markers"]}
        text = yaml.safe_dump({"schema_version": 1, **markers, "scenarios": many})
        (scenarios / f"standin{part or ''}.yaml").write_text(text)
    bare = folder / "bare"
    bare.mkdir()
    (bare / "test_bare.py").write_text(
        "import pathlib, pytest, yaml\n"
        f"files = pathlib.Path({str(scenarios)!r}).iterdir()\n"
        "plain = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in files]\n"
        "ids = [one['id'] for file in plain for one in file['scenarios']]\n"
        "@pytest.mark.parametrize('name', ids)\n"
        "def test_bare(name):\n    pass\n"
    )
    suite, plain_pytest = pairs(
        repeat,
        lambda: pytest_session(folder, "--collect-only", "perf_tests/test_serving.py"),
        lambda: pytest_session(bare, *BARE),
    )
    what = f"{SCENARIOS:,} scenarios"
    row(f"collecting {what}", suite, "bare pytest and YAML", plain_pytest, "≤ 4 s")
    listing, helping = pairs(
        repeat,
        lambda: command(folder, "scenarios", "list", "--import", "standin"),
        lambda: command(folder, "--help"),
    )
    row(f"listing {what}", listing, "`perfgate --help`", helping, "≤ 4 s, ≤ 0.15 s")


def starting(folder: Path, repeat: int) -> None:
    """Start a session on the suite as it is, against bare pytest with one test."""
    bare = folder / "bare"
    bare.mkdir(parents=True)
    (bare / "test_bare.py").write_text("def test_bare():\n    pass\n")
    suite, plain_pytest = pairs(
        repeat,
        lambda: pytest_session(ROOT, "--collect-only", "-m", "local"),
        lambda: pytest_session(bare, *BARE),
    )
    own = statistics.median(suite) - statistics.median(plain_pytest)
    row("session start", suite, "bare pytest", plain_pytest, "≤ 0.65 s", f"{own:.2f} s")


def loading(folder: Path, repeat: int) -> None:
    """What perfgate adds to every session of pytest where it is installed."""
    folder.mkdir()
    mine, theirs = pairs(
        4 * repeat,
        lambda: python(folder, "pytest", "--version"),
        lambda: python(folder, "pytest", "--version", "-p", "no:perfgate"),
    )
    own = 1000 * (statistics.median(mine) - statistics.median(theirs))
    row("pytest --version", mine, "without the plugin", theirs, "≤ 30 ms", f"{own:.0f} ms")


def cpu_seconds() -> float:
    """CPU time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def own_time(folder: Path, repeat: int) -> None:
    """A session of stand-ins, less the time of the same programs run alone."""
    checkout(folder)
    environment = {"PERFGATE_STANDIN_COUNTER": str(folder / "starts")}
    sessions, own = [], []
    for number in range(repeat):
        starts_before = count(folder / "starts")
        began = time.monotonic()
        options = ("perf_tests/test_serving.py", "--run-dir", str(folder / f"run{number}"))
        pytest_session(folder, *options, **environment)
        took = time.monotonic() - began
        starts = count(folder / "starts") - starts_before
        began = time.monotonic()
        pytest_session(folder, "--collect-only", "perf_tests/test_serving.py", **environment)
        start = time.monotonic() - began
        server, client = programs_alone(folder, environment)
        sessions.append(took)
        own.append((took - start - starts * (server + 2 * client)) / 2)
    print(
        f"| own time per test | {statistics.median(sessions):.2f} s a session of two |"
        " less start and programs |"
        f" {statistics.median(own):.2f} s | ≤ 0.2 s |"
    )


def programs_alone(folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds until the stand-in server listens, and of one client run, without perfgate."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    began = time.monotonic()
    options = ["--host", "127.0.0.1", "--port", str(port), "--model", "made-up", "--threads", "2"]
    counter = {"PERFGATE_STANDIN_COUNTER": str(folder / "alone"), "PERFGATE_ROLE": "new"}
    server = subprocess.Popen(
        [sys.executable, str(STANDINS / "standin_server.py"), *options],
        env={**os.environ, **environment, **counter},
        stdout=subprocess.DEVNULL,
    )
    try:
        while server.poll() is None:
            try:
                urllib.request.urlopen(url + "/health").close()
                break
            except OSError:
                time.sleep(0.005)
        else:
            raise SystemExit("the server of the benchmark ended before it listened")
        ready = time.monotonic() - began
        began = time.monotonic()
        out = ["--url", url, "--out", str(folder / "alone.json"), "--requests", "4"]
        subprocess.run([sys.executable, str(STANDINS / "standin_client.py"), *out], check=True)
        return ready, time.monotonic() - began
    finally:
        server.kill()
        server.wait()


def checkout(folder: Path) -> None:
    """A small checkout whose only scenario uses the stand-ins."""
    for name in ("scenarios", "baselines"):
        (folder / name).mkdir(parents=True)
    shutil.copy(STANDINS / "standin.yaml", folder / "scenarios")
    shutil.copytree(ROOT / "perf_tests", folder / "perf_tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    plugins = ["perfgate.suite.plugin", "standin"]
    (folder / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n")


def count(file: Path) -> int:
    return int(file.read_text()) if file.exists() else 0


def pytest_session(folder: Path, *options: str, **environment: str) -> None:
    """One pytest session in a process of its own; its status may be any but an error."""
    python(folder, "pytest", "-q", *options, **environment)


def command(folder: Path, *words: str) -> None:
    """One `perfgate` command in a process of its own."""
    python(folder, "perfgate", *words)


def python(folder: Path, module: str, *words: str, **environment: str) -> None:
    """Run a module, with its byte code kept, as an installation has it."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "src"), str(STANDINS)))
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "PYTHONDONTWRITEBYTECODE": "",
            "PERFGATE_ROOT": str(folder if (folder / "scenarios").is_dir() else ROOT),
            "PERFGATE_HOME": str(folder / "home"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 10):
        raise SystemExit(done.stdout + done.stderr)


def pairs(
    repeat: int, one: Callable[[], None], other: Callable[[], None]
) -> tuple[list[float], list[float]]:
    """CPU seconds of both, run in turn so that a machine that slows down touches both alike."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for call, taken in zip((one, other), times, strict=True):
            before = cpu_seconds()
            call()
            taken.append(cpu_seconds() - before)
    return times


def row(
    what: str, mine: list[float], other: str, theirs: list[float], aim: str, result: str = ""
) -> None:
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    shown = result or f"× {statistics.median(ratios):.2f}"
    print(
        f"| {what} | {statistics.median(mine):.2f} s | {other} {statistics.median(theirs):.2f} s |"
        f" {shown} | {aim} |"
    )


if __name__ == "__main__":
    sys.exit(main())
