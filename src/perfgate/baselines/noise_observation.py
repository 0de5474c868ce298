"""Noise observation: what the records of a run show of the noise of its hardware. Reads only.

Any undisturbed start counts, whatever the verdict was, controls included: a build that is slower is
as noisy. What stand-ins made, and settings that were injected, never count.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from perfgate.baselines.noise_history import (
    NoiseRun,
    NoiseSeries,
    content_of,
    is_learnt_from,
    machine_of,
    save,
)
from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import median
from perfgate.runs.records import RunFolder, now

Line = Mapping[str, Any]


class _Key(NamedTuple):
    """What the starts of one series have in common."""

    hardware: str
    scenario: str
    probe: str
    content: str
    build: str
    role: str
    node: str
    own: bool


def observe(folder: RunFolder) -> list[NoiseRun]:
    """What the run showed, one value for each hardware that it measured on; empty: nothing.

    Raises:
        InputError: no run is there, or its records are damaged or cannot be trusted.
    """
    facts = folder.facts()
    if not _is_real(folder, facts):
        return []
    records = folder.records()
    measured = [one for one in records if one.get("record") == "measurement"]
    levels = _levels(one for one in records if one.get("record") == "verdict")
    grouped: dict[_Key, list[Line]] = defaultdict(list)
    for line in measured:
        if not (line.get("disturbed") or line.get("injected") or line.get("synthetic")):
            grouped[_key(line)].append(line)
    of_hardware: dict[str, list[NoiseSeries]] = defaultdict(list)
    for key, lines in grouped.items():
        one = _series(key, lines, levels.get((key.scenario, key.probe, key.role), {}))
        if one.values:
            of_hardware[key.hardware].append(one)
    return [
        NoiseRun(hardware, str(facts["id"]), now(), tuple(series))
        for hardware, series in of_hardware.items()
    ]


def keep_noise(runs: Sequence[Path], *, store: Path | None = None) -> list[Path]:
    """Add what runs showed to the noise history, beside the baselines; whatever their verdicts.

    What a machine measured that is its own reference goes into its own store.

    Args:
        runs: their folders.
        store: the folder of another store of baselines; what is the machine's own is then left out.

    Returns:
        the files.

    Raises:
        InputError: not a run, or one whose records cannot be trusted.
        RunError: it cannot be written.
    """
    observed = [one for run in runs for one in observe(RunFolder(run.resolve()))]
    kept = []
    for one in observed:
        for own in (False,) if store else (False, True):
            series = tuple(each for each in one.series if each.own == own)
            if series:
                kept.append(save(replace(one, series=series), own=own, store=store))
    return kept


def _is_real(folder: RunFolder, facts: Line) -> bool:
    """Whether all that tells whether stand-ins made a run's numbers says that none did."""
    signs = [one for one in facts.get("arguments", ()) if str(one).startswith("--rehearse")]
    rehearsed = bool(signs) or (folder.path / "rehearsal").exists()
    return facts.get("synthetic") is False and not rehearsed


def _key(line: Line) -> _Key:
    return _Key(
        line["hardware"],
        line["scenario"],
        line["probe"],
        content_of(line["fingerprint"]),
        line["engine"]["commit"],
        line["role"],
        node_of(line.get("facts", {})),
        bool(line.get("machine_bound")),
    )


def node_of(facts: Mapping[str, Any]) -> str:
    """The node, or nodes, that a measurement's engine ran on; empty: perfgate's own machine."""
    for launcher, names in (("slurm", "nodes"), ("mpirun", "hosts")):
        told = facts.get(launcher)
        nodes = told.get(names) if isinstance(told, Mapping) else None
        if isinstance(nodes, list):
            return ",".join(sorted(map(str, nodes)))
    return ""


def _series(key: _Key, lines: Sequence[Line], levels: Mapping[str, float]) -> NoiseSeries:
    ordered = sorted(lines, key=lambda line: (str(line["started"]), line.get("start", 0)))
    names = [name for name in ordered[0]["metrics"] if is_learnt_from(name)]
    values = {
        name: tuple(float(line["metrics"][name]) for line in ordered)
        for name in names
        if all(name in line["metrics"] for line in ordered)
    }
    return NoiseSeries(
        scenario=key.scenario,
        probe=key.probe,
        content=key.content,
        build=key.build,
        values=values,
        machine=machine_of(ordered[0]["fingerprint"]),
        node=key.node,
        own=key.own,
        offsets=_offsets(values, levels),
    )


def _offsets(
    values: Mapping[str, Sequence[float]], levels: Mapping[str, float]
) -> dict[str, float]:
    """How much worse the session was than the baseline, metric by metric, on the log scale."""
    found = {}
    for name, level in levels.items():
        try:
            here = median(scale.badness(lookup(name), values.get(name, ()), "session"))
            there = scale.badness(lookup(name), [level], "baseline")[0]
        except InputError:  # no values, or none that has a logarithm
            continue
        if abs(here - there) < math.log(scale.UNIT_FACTOR):
            found[name] = here - there
    return found


def _levels(verdicts: Iterable[Line]) -> dict[tuple[str, str, str], dict[str, float]]:
    """Scenario, probe and role → metric → level of the baseline.

    The new build tells of the machine only where it passed; the baseline's build always does.
    """
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for line in verdicts:
        for judged in line.get("judgements", ()):
            level = judged.get("baseline")
            if judged.get("against") != "baseline" or not isinstance(level, int | float):
                continue
            if not is_learnt_from(judged["metric"]):
                continue
            roles = ["baseline_control"]
            if judged["verdict"] == Verdict.PASS:
                roles.append("new")
            for role in roles:
                of_probe = found.setdefault((line["scenario"], line["probe"], role), {})
                of_probe[judged["metric"]] = float(level)
    return found
