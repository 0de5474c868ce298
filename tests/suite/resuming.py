"""Sessions in one run folder, one after the other, of two scenarios with one accuracy task each."""

import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from checkouts import ACCURACY, STANDINS, Finished, Suite, wait_for
from plain_records import recorded

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
        self.resumed = f"--resume={self.folder}"

    def begun(self, *options: str, hangs: str) -> AbstractContextManager["subprocess.Popen[str]"]:
        """A session while a block runs; on its start of scenario `hangs` the client hangs."""
        return self.checkout.begun(*_words(options), PERFGATE_STANDIN_HANGS=hangs)

    def begin_here(self, *options: str) -> Finished:
        """A first session, to its end."""
        return self.checkout.session(*_words(options))

    def finish_here(self, *options: str) -> Finished:
        """A session that goes on with the run, to its end."""
        return self.checkout.session(self.resumed, *_words(options))

    def kill_in(self, scenario: str, *options: str, hangs: str) -> None:
        """Kill a session once the client of the scenario's first start is at work."""
        with self.begun(*options, hangs=hangs):
            if self.resumed in options:
                wait_for(self.folder / f"{scenario}.broken-1")
            wait_for(self.evaluating(scenario))

    def evaluating(self, scenario: str) -> Path:
        """A file that is there once the client of the scenario's first start is at work."""
        return self.folder / scenario / "start-1-new" / "sums" / "evaluator.out"

    def records(self, kind: str) -> list[dict[str, object]]:
        """The records that stand."""
        return recorded(RunFolder(self.folder), kind)

    def require_one_record_a_group(self, *groups: str) -> None:
        assert sorted(str(line["scenario"]) for line in self.records("group")) == sorted(groups)


def _words(options: tuple[str, ...]) -> list[str]:
    # The accuracy tasks have no baseline to be judged by.
    record = () if "--gate" in options else ("--record",)
    return [*record, *options, ACCURACY]
