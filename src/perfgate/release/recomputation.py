"""Recomputation: the verdicts of a run, judged again from its raw files.

The input of each verdict is assembled as the run assembled it, from what its programs wrote, the
baselines and waivers that it kept, and the scenarios. It is compared field by field with the
recorded one and judged by the same function. What no file holds is taken from the record and named.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from perfgate.baselines import Entry, as_run
from perfgate.baselines.file import read
from perfgate.baselines.snapshots import kept_entry, kept_file
from perfgate.baselines.waivers import load_waivers
from perfgate.clients.base import Client, Offline
from perfgate.clients.load_files import parsed_load, parsed_offline
from perfgate.core.errors import PerfgateError
from perfgate.core.measurement import Measurement
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.programs.locations import Locations
from perfgate.core.verdict import RULE_VERSION, Judgement, Rule, Verdict
from perfgate.evaluators.base import Evaluator
from perfgate.judging.assembly.claims import claim_input
from perfgate.judging.assembly.judge_input import (
    SCHEMA_VERSION,
    ControlSources,
    JudgeInput,
    Provenance,
    Side,
    broken_answers,
    judge,
    provenance_of,
)
from perfgate.judging.assembly.judgement import (
    ControlStarts,
    ProbeEvidence,
    Reference,
    ab_input,
    is_interleaved,
    probe_input,
    smoke_input,
)
from perfgate.judging.assembly.sweeps import SweepProbe, curve_input, sweep_probes
from perfgate.plan.toolchain import toolchain_for
from perfgate.release.policy import SuiteTests
from perfgate.release.release_status import ReleaseStatus
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.record import GroupRecord, MeasurementRecord, VerdictRecord
from perfgate.scenarios.probe import Probe, all_probes, order
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint, Scenario

_SHOWN = 80  # characters of a value in a message
Key = tuple[str, str, str, int]
"""Scenario, probe, role and number of the start that a record of a measurement is of."""
# What of a verdict's sources no file of a run holds → whether there is such a source.
_FROM_RECORDS: Mapping[str, Callable[[Provenance], object]] = {
    "the noise of one fresh start, learnt from the hardware's history": lambda one: one.noise,
    "what the machine measured of itself in earlier sessions": lambda one: one.earlier,
    "the documented values": lambda one: one.documented,
    "why no control of another build could be started": lambda one: (
        one.controls and one.controls.skip_reasons
    ),
}
# Far below any digit that is shown; another release of numpy or scipy may round otherwise.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Recomputed:
    """One verdict, judged again.

    Attributes:
        run: id of the run.
        test: id of the probe, curve or claim.
        verdict: what the raw files give; None: it cannot be computed.
        differences: what is not as recorded, one line each, with both values; empty: all is.
        not_recomputed: what was taken from the records, as no file holds it, one line each.
        metrics: gating metrics whose judgement was computed again.
    """

    run: str
    test: str
    verdict: Verdict | None
    differences: tuple[str, ...] = ()
    not_recomputed: tuple[str, ...] = ()
    metrics: int = 0


def recompute_run(run: EndedRun, suite: SuiteTests) -> tuple[Recomputed, ...]:
    """Judge the tests of a run again.

    Args:
        run: the run; nothing but its folder is read.
        suite: what the suite could measure when the run was made.

    Returns:
        one for each test with a verdict, in the order recorded.

    Raises:
        ReleaseRefused: status OTHER_VERSION: judged by another version of the rule, or by a
            perfgate that did not keep what verdicts rest on; NOT_REPRODUCED: a scenario is not what
            the run measured, or is missing.
        InputError: a record of it is damaged.
    """
    require_same_scenarios([run], suite.scenarios, ReleaseStatus.NOT_REPRODUCED)
    again = _Recomputation(run, suite)
    return tuple(map(again.recomputed, run.records_of(VerdictRecord)))


def _by_label(scenarios: Iterable[Scenario]) -> dict[tuple[str, str], Probe]:
    """Scenario and label → probe."""
    return {
        (scenario.id, probe.label): probe
        for scenario in scenarios
        for probe in all_probes(scenario)
    }


def require_same_scenarios(
    runs: Iterable[EndedRun], scenarios: Iterable[Scenario], status: ReleaseStatus
) -> None:
    """Check that scenarios are as runs measured them.

    Args:
        runs: their records have the hashes of what they measured.
        scenarios: all, as the files have them now.
        status: of the refusal.

    Raises:
        ReleaseRefused: with that status; all that changed is named.
    """
    probes = _by_label(scenarios)
    changed = []
    for run in runs:
        contents = {  # of a group that did not end, its measurements have them
            (one.scenario, one.probe): one.fingerprint.get("content", "")
            for one in run.records_of(MeasurementRecord)
            if not one.injected
        }
        for record in run.records_of(GroupRecord):
            contents |= {
                (record.scenario, label): content for label, content in record.content.items()
            }
        for key, measured in contents.items():
            now = probes[key].content_hash() if key in probes else "gone"
            if measured and now != measured:
                changed.append(f"{', '.join(key)}: {now}, {measured} in run {run.id}")
    if changed:
        raise status.refusal("scenario_changed", found="; ".join(changed))


class _Recomputation:
    """A run that is judged again, and what the verdict at hand was found to rest on.

    `_differences` are what records have otherwise than the raw files, `_from_records` what no file
    holds, so that it is taken from a record; one line each.
    """

    def __init__(self, ended: EndedRun, suite: SuiteTests) -> None:
        self._run = ended
        self._measured: dict[Key, MeasurementRecord] = {
            (line.scenario, line.probe, line.role, line.start): line
            for line in ended.records_of(MeasurementRecord)
        }
        self._verdicts = {line.name: line for line in ended.records_of(VerdictRecord)}
        self._probes = _by_label(suite.scenarios)
        self._claims = {claim.id: claim for claim in suite.claims}
        self._curves = {probe.id: probe for each in suite.scenarios for probe in sweep_probes(each)}
        self._parsed: dict[str, Measurement] = {}
        self._differences: list[str] = []
        self._from_records: list[str] = []

    def recomputed(self, line: VerdictRecord) -> Recomputed:
        """One verdict, judged again."""
        recorded, name = line.verdict, line.name
        if line.error is not None or (
            line.judge_input is None
            and not line.judgements
            and recorded in (Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE)
        ):
            why = line.error.error_class if line.error else line.reason
            text = f"{name}: {recorded.value} without numbers: {why}"
            return Recomputed(self._run.id, name, None, not_recomputed=(text,))
        given = line.judge_input or {}
        self._require_version(name, given)
        self._differences, self._from_records = [], []
        try:
            built = self._input(line)
            judged = judge(built)
        except (PerfgateError, KeyError) as error:
            text = f"{name}: cannot be judged from the raw files: {_first_line(error)}"
            return Recomputed(self._run.id, name, None, (text,))
        self._differences += [
            *_differences(f"{name}: judge_input", given, built.as_record()),
            *_differences(name, _plain(line.judgements), _plain(judged.judgements)),
            *_differences(name, recorded.value, judged.verdict.value),
        ]
        differences, not_recomputed = (
            tuple(dict.fromkeys(lines)) for lines in (self._differences, self._from_records)
        )
        metrics = sum(judgement.measured is not None for judgement in judged.judgements)
        return Recomputed(self._run.id, name, judged.verdict, differences, not_recomputed, metrics)

    def _require_version(self, name: str, given: Mapping[str, Any]) -> None:
        """Check that this perfgate can judge what was recorded."""
        judge = f"perfgate {self._run.facts['versions'].get('perfgate')}"
        for field, expected in (("schema_version", SCHEMA_VERSION), ("rule_version", RULE_VERSION)):
            if (found := given.get(field)) != expected:
                raise ReleaseStatus.OTHER_VERSION.refusal(
                    "judge_input",
                    file=self._run.folder / "records.jsonl",
                    field=f"{name}: judge_input.{field}",
                    found="none" if found is None else found,
                    version=expected,
                    judge=judge,
                )

    def _input(self, line: VerdictRecord) -> JudgeInput:
        """The input of a verdict, assembled again.

        Raises:
            InputError, RunError: the files cannot be judged.
            KeyError: the record names a start, a probe or a claim that is not there.
        """
        name, origin = line.name, provenance_of(line) or Provenance()
        if name in self._claims:
            claim = self._claims[name]
            sides = zip(claim.probes, origin.sides, strict=True)
            return claim_input(claim, {probe: self._side(probe, one) for probe, one in sides})
        subject = self._curves.get(name) or self._probes[line.scenario, line.probe]
        given = line.judge_input or {}
        most = from_plain(Rule, given["rule"]).max_runs
        rule = Rule(max_runs=min(most, subject.scenario.gate.max_starts))
        if isinstance(subject, SweepProbe):
            built = self._of_curve(subject, origin, rule)
        else:
            built = self._of_probe(subject, origin, rule)
            if not subject.is_load:
                return built
        recorded = given["broken"]
        return replace(built, broken=self._broken_answers(subject.scenario, recorded))

    def _of_curve(self, curve: SweepProbe, origin: Provenance, rule: Rule) -> JudgeInput:
        points = []
        for probe in curve.probes:
            of_point = origin.points[probe.label]
            points.append(self._evidence(probe, of_point, of_point.controls or origin.controls))
        return self._waived(curve_input(curve, points, rule), origin)

    def _of_probe(self, probe: Probe, origin: Provenance, rule: Rule) -> JudgeInput:
        if origin.sides:  # an A/B
            a, b = (self._starts(probe, side.role, side.starts) for side in origin.sides)
            return ab_input(probe, [*a.values()], [*b.values()], origin.noise)
        if probe.is_smoke:
            now = self._starts(probe, origin.role, origin.starts)
            return smoke_input(probe, [*now.values()])
        return self._waived(
            probe_input(self._evidence(probe, origin, origin.controls), rule), origin
        )

    def _waived(self, built: JudgeInput, origin: Provenance) -> JudgeInput:
        """With the waivers that the run kept, as of the day on which it started."""
        kept = load_waivers(kept_file(self._run.folder, origin.waivers)) if origin.waivers else ()
        return built.waived_by(kept, datetime.fromisoformat(self._run.facts["started"]).date())

    def _broken_answers(self, scenario: Scenario, recorded: str) -> str:
        """Why the speed of a build says nothing, by its answers in the same run."""
        judged = {}
        for probe in sorted(all_probes(scenario), key=order):
            line = self._verdicts.get(probe.id)
            if probe.is_load or probe.is_smoke or not self._fingerprint(probe, "new"):
                continue
            if line is None or line.error is not None:
                self._from_records.append(f"whether the answers of {probe.label} are broken")
                return recorded
            if line.judge_input is not None:
                judged[probe.label] = judge(self._input(line))
        return broken_answers(judged)

    def _side(self, probe: Probe, side: Side) -> Sequence[Measurement] | Entry:
        """One side of a claim."""
        if side.baseline:
            return read(kept_file(self._run.folder, side.baseline)).entries[side.probe]
        return [*self._starts(probe, side.role, side.starts).values()]

    def _evidence(
        self, probe: Probe, origin: Provenance, builds: ControlSources | None
    ) -> ProbeEvidence:
        """What the run had of a probe.

        Args:
            probe: the probe.
            origin: where its values come from.
            builds: the controls that stood beside it; None: there could be none.
        """
        builds = builds or ControlSources("auto")
        measured = {
            against: self._starts(probe, f"{against}_control", starts)
            for against, starts in builds.starts.items()
        }
        return ProbeEvidence(
            probe,
            self._reference(probe, origin),
            self._fingerprint(probe, origin.role),
            self._starts(probe, origin.role, origin.starts),
            ControlStarts(builds.policy, measured, builds.skip_reasons),
        )

    def _reference(self, probe: Probe, origin: Provenance) -> Reference:
        """What a probe was compared with: the machine itself, or kept baselines."""
        self._from_records += [what for what, taken in _FROM_RECORDS.items() if taken(origin)]
        if origin.own_starts:
            runs = []
            for start in origin.own_starts:
                measured = self._measurement(probe, "reference", start)
                line = self._measured[probe.scenario.id, probe.label, "reference", start]
                runs.append(as_run(measured, self._run.id, line.started, line.seconds, start))
            return Reference(
                Entry(self._fingerprint(probe, origin.role), tuple(runs)),
                noise=origin.noise,
                is_interleaved=is_interleaved(probe.scenario),
                earlier=origin.earlier,
            )
        anchor = (origin.anchor,) if origin.anchor else ()
        return Reference(
            kept_entry(self._run.folder, origin.window, probe.label),
            origin.documented,
            kept_entry(self._run.folder, anchor, probe.label),
            origin.noise,
        )

    def _fingerprint(self, probe: Probe, role: str) -> Mapping[str, str]:
        """The facts that the last measurement of a role had; empty: there is none."""
        of_probe = (probe.scenario.id, probe.label, role)
        found = [line for key, line in self._measured.items() if key[:3] == of_probe]
        return found[-1].fingerprint if found else {}

    def _starts(self, probe: Probe, role: str, starts: Sequence[int]) -> dict[int, Measurement]:
        """Number of each of these starts → what the programs wrote there."""
        return {start: self._measurement(probe, role, start) for start in starts}

    def _measurement(self, probe: Probe, role: str, start: int) -> Measurement:
        """One measurement: the numbers of the raw files beside the facts of the record."""
        line = self._measured[probe.scenario.id, probe.label, role, start]
        recorded = line.measurement
        if probe.is_smoke:
            self._from_records.append(
                f"{probe.label}: the first answer of start {start}, which perfgate itself asked for"
            )
            return recorded
        place = f"{probe.scenario.id}/start-{start}-{role}/{probe.label}"
        try:
            if place not in self._parsed:
                self._parsed[place] = _parsed(self._run.folder / place, probe)
        except (PerfgateError, OSError) as error:
            self._differences.append(f"{place}: the raw files cannot be read: {_first_line(error)}")
            return recorded
        found = self._parsed[place]
        for metric in sorted({*recorded.metrics, *found.metrics}):
            old, new = recorded.metrics.get(metric), found.metrics.get(metric)
            self._differences += _differences(f"{place}: {metric}", old, new)
        for metric in sorted({*recorded.answers, *found.answers}):
            before, after = recorded.answers.get(metric, {}), found.answers.get(metric, {})
            if other := sum(before.get(one) != after.get(one) for one in {*before, *after}):
                self._differences.append(
                    f"{place}: {metric}: {other} answers are other ones in the raw files"
                )
        return Measurement(found.metrics, recorded.facts, found.answers)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _plain(judgements: Sequence[Judgement]) -> Any:
    """Judgements without the sentences about their numbers."""
    return [
        {name: value for name, value in one.items() if name not in ("reason", "notes")}
        for one in to_plain(judgements)
    ]


def _differences(place: str, recorded: Any, found: Any) -> Iterator[str]:
    """What differs of two plain values, one line for each field, with both values."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for name in dict.fromkeys([*found, *recorded]):
            yield from _differences(f"{place}.{name}", recorded.get(name), found.get(name))
    elif isinstance(recorded, list) and isinstance(found, list):
        for number, (old, new) in enumerate(zip_longest(recorded, found)):
            known = new or old
            label = known.get("metric", number) if isinstance(known, dict) else number
            yield from _differences(f"{place}[{label}]", old, new)
    elif not _is_equal(recorded, found):
        yield f"{place}: {_shown(recorded)} in the records, {_shown(found)} from the raw files"


def _is_equal(recorded: object, found: object) -> bool:
    if isinstance(recorded, float) and isinstance(found, float):
        return math.isclose(recorded, found, rel_tol=_CLOSE, abs_tol=1e-12)
    return recorded == found


def _parsed(folder: Path, probe: Probe) -> Measurement:
    tools = toolchain_for(probe.scenario, Locations(on_paper=True))
    program, what = tools.program_of(probe), probe.what
    if isinstance(program, Offline):
        return parsed_offline(program, probe.scenario, what, folder)
    if isinstance(program, Client) and isinstance(what, LoadPoint) and probe.scenario.workload:
        return parsed_load(program, probe.scenario, what, folder)
    if isinstance(program, Evaluator) and isinstance(what, AccuracyTask):
        return program.parse(what, folder)
    raise TypeError(f"{program} does not measure {probe}")


def _shown(value: object) -> str:
    """A recorded value in a message."""
    return "none" if value is None else f"{value!s:.{_SHOWN}}"
