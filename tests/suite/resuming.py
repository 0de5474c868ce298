"""Sessions in one run folder, one after the other, of two scenarios with one accuracy task each."""

import signal
import subprocess
import sys
from pathlib import Path

import forked
from checkouts import ACCURACY, PLUGINS, STANDINS, Finished, Suite, wait_for
from plain_records import recorded
from sessions import untraced

from perfgate.runs.run_folder import RunFolder

FIRST, SECOND = "a-first", "b-second"
BOTH = {FIRST, SECOND}


def copies(suite: Suite, *names: str) -> None:
    """The stand-ins' scenario under each of these names, in their order."""
    head, _, block = (STANDINS / "standin.yaml").read_text().partition("  - id: standin-serve\n")
    text = head + "".join(f"  - id: {name}\n{block}" for name in names)
    (suite.folder / "scenarios" / "standin.yaml").write_text(text)


class Road:
    """Sessions in one run folder of a checkout."""

    def __init__(self, checkout: Suite) -> None:
        self.checkout = checkout
        self.folder = checkout.folder / "run"

    def begin(self, *options: str, hangs: str = "") -> subprocess.Popen[str]:
        """A first session; on its start of scenario `hangs` the client hangs for ever."""
        return self._session("--run-dir", str(self.folder), *options, hangs=hangs)

    def resume(self, *options: str, hangs: str = "") -> subprocess.Popen[str]:
        return self._session(f"--resume={self.folder}", *options, hangs=hangs)

    def begin_here(self, *options: str) -> Finished:
        """A first session, to its end."""
        return self._here(f"--run-dir={self.folder}", *options)

    def finish_here(self, *options: str) -> Finished:
        """A session that goes on with the run, to its end."""
        return self._here(f"--resume={self.folder}", *options)

    def end(self, session: subprocess.Popen[str]) -> Finished:
        output, _ = session.communicate(timeout=120)
        return Finished(session.returncode, output, self.folder)

    def kill_in(self, session: subprocess.Popen[str], scenario: str) -> None:
        """Kill the session once the client of the scenario's first start is at work."""
        try:
            wait_for(self.evaluating(scenario))
        finally:
            session.send_signal(signal.SIGKILL)
            session.communicate()

    def evaluating(self, scenario: str) -> Path:
        """A file that is there once the client of the scenario's first start is at work."""
        return self.folder / scenario / "start-1-new" / "sums" / "evaluator.out"

    def records(self, kind: str) -> list[dict[str, object]]:
        """The records that stand."""
        return recorded(RunFolder(self.folder), kind)

    def require_one_record_a_group(self, *groups: str) -> None:
        assert sorted(str(line["scenario"]) for line in self.records("group")) == sorted(groups)

    def _here(self, *options: str) -> Finished:
        words, environment = self._words(*options), untraced(self.checkout.environment)
        return Finished(*forked.session(words, self.checkout.folder, environment), self.folder)

    def _words(self, *options: str) -> list[str]:
        # The accuracy tasks have no baseline to be judged by.
        record = () if "--gate" in options else ("--record",)
        return [*PLUGINS, "-q", *record, *options, ACCURACY]

    def _session(self, *options: str, hangs: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *self._words(*options)],
            cwd=self.checkout.folder,
            env={**untraced(self.checkout.environment), "PERFGATE_STANDIN_HANGS": hangs},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
