"""Recordable runs: which runs as a whole may become baselines, by what their facts say."""

from perfgate.core.errors import InputError
from perfgate.runs.records import RunFolder


def require_real(folder: RunFolder) -> None:
    """Check that all that tells whether stand-ins made a run's numbers tells the same.

    Raises:
        InputError: ``run.json`` calls real what its other facts, or its folder, say were stand-ins.
    """
    facts = folder.facts()
    signs = [one for one in facts.get("arguments", ()) if str(one).startswith("--rehearse")]
    signs += ["rehearse_fault"] if facts.get("rehearse_fault") is not None else []
    signs += ["the folder rehearsal"] if (folder.path / "rehearsal").exists() else []
    if facts.get("synthetic") is not True and (signs or facts.get("synthetic") is not False):
        raise InputError(
            "the run does not agree with itself on whether stand-ins made its numbers",
            file=folder.path / "run.json",
            field="synthetic",
            found=f"{facts.get('synthetic')}" + (f", beside {', '.join(signs)}" if signs else ""),
            expected="true where the run was a rehearsal, else false",
            hint="measure anew in a new run folder",
        )


def require_one_build(folder: RunFolder) -> None:
    """Refuse an A/B, which holds one build against another and not against history.

    Raises:
        InputError: the run is one.
    """
    if builds := folder.facts().get("ab"):
        raise InputError(
            "the run compared two builds: its starts become no baseline",
            file=folder.path / "run.json",
            field="ab",
            found=" ".join(map(str, builds)),
            expected="a run of one build",
            hint="measure the build that is to be the baseline by itself, with --record",
        )
