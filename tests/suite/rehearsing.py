"""Rehearsals: sessions of the real suite with stand-ins for the engine's programs."""

import os
from pathlib import Path

import forked
from checkouts import PLUGINS, ROOT, Finished
from sessions import ONLY_NEEDED_PLUGINS, inherited

OFFLINE = "h200-r1-fp8-max-throughput"


class Rehearsed(Finished):
    """A finished rehearsal; its verdicts by full name, as it is of several scenarios."""

    @property
    def verdicts(self) -> dict[str, str]:
        return {line["name"]: line["verdict"] for line in self.records("verdict")}


def rehearse(place: Path, *options: str, traced: bool = False, **variables: str) -> Rehearsed:
    """One rehearsal.

    Args:
        place: for its files; its run is in ``run``.
        options: of pytest.
        traced: the lines of its programs count for the coverage of the tests, which takes time.
        variables: of the environment.
    """
    words = [*PLUGINS, "-q", "-p", "no:cacheprovider", "perf_tests", "--rehearse", *options]
    if not any(one.startswith("--resume") for one in options):
        words.append(f"--run-dir={place / 'run'}")
    session = forked.session(words, ROOT, environment(place, **variables), traced=traced)
    return Rehearsed(*session, place / "run")


def environment(place: Path, **variables: str) -> dict[str, str]:
    """That of a rehearsal with its files in `place`, and these variables."""
    return inherited("PERFGATE_") | {
        "PERFGATE_HOME": str(place / "home"),
        "PERFGATE_LEASES": os.environ["PERFGATE_LEASES"],
        **ONLY_NEEDED_PLUGINS,
        **variables,
    }
