"""Recomputation: the verdicts of a run, judged again from its raw files.

The input of each verdict is assembled as the run assembled it, from what its programs wrote, the
baselines and waivers that it kept, and the scenarios. It is compared field by field with the
recorded one and judged by the same function. What no file holds is taken from the record and named.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from perfgate.campaign.probe_state import smoke_input
from perfgate.core.errors import PerfgateError
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.rule import VERSION, Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.ab import ab_input
from perfgate.judging.assembly.claims import claim_input, claim_probes
from perfgate.judging.assembly.judge_input import (
    SCHEMA_VERSION,
    ControlSources,
    JudgeInput,
    Provenance,
    broken_answers,
    judge,
    provenance_of,
)
from perfgate.judging.assembly.judgement import probe_input
from perfgate.judging.assembly.sweeps import SweepProbe, curve_input, sweep_probes
from perfgate.release.raw_measurements import RawRun, shown
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.runs.record import GroupRecord, VerdictRecord
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.probe import Probe, all_probes, order
from perfgate.scenarios.scenario import Claim, Scenario

# Far below any digit that is shown; another release of numpy or scipy may round otherwise.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Recomputed:
    """One verdict, judged again.

    Attributes:
        run: id of the run.
        test: id of the probe, curve or claim.
        recorded: the verdict that the run's records have; None: it has none.
        verdict: what the raw files give; None: it cannot be computed.
        differences: what is not as recorded, one line each, with both values; empty: all is.
        not_recomputed: what was taken from the records, as no file holds it, one line each.
        metrics: gating metrics whose judgement was computed again.
    """

    run: str
    test: str
    recorded: Verdict | None
    verdict: Verdict | None
    differences: tuple[str, ...] = ()
    not_recomputed: tuple[str, ...] = ()
    metrics: int = 0


def recompute_run(
    run: Path, scenarios: Sequence[Scenario], claims: Sequence[Claim] = ()
) -> tuple[Recomputed, ...]:
    """Judge the tests of a run again.

    Args:
        run: its folder; nothing beside it is read but the scenarios.
        scenarios: all that the suite has, as the run was made with them.
        claims: likewise.

    Returns:
        one for each test with a verdict, in the order recorded.

    Raises:
        ReleaseRefused: status OTHER_VERSION: judged by another version of the rule, or by a
            perfgate that did not keep what verdicts rest on; NOT_REPRODUCED: a scenario is not what
            the run measured, or is missing.
        InputError: no run is there, or a record of it is damaged or was changed.
    """
    return _Recomputation(read_run(run), scenarios, claims).all()


class _Recomputation:
    def __init__(
        self, ended: EndedRun, scenarios: Sequence[Scenario], claims: Sequence[Claim]
    ) -> None:
        self._run = ended
        self._raw = RawRun(ended)
        self._probes = {
            (one.id, probe.label): probe for one in scenarios for probe in all_probes(one)
        }
        self._curves = {one.id: one for scenario in scenarios for one in sweep_probes(scenario)}
        known = claims_of(scenarios, claims)  # floors are claims, too
        self._claims = {one.id: one for one in claim_probes(known, scenarios)}
        self._verdicts = {line.name: line for line in ended.records_of(VerdictRecord)}

    def all(self) -> tuple[Recomputed, ...]:
        """Every verdict of the run."""
        for line in self._run.records_of(GroupRecord):
            self._require_content(line)
        return tuple(map(self._recomputed, self._run.records_of(VerdictRecord)))

    def _require_content(self, group: GroupRecord) -> None:
        for label, content in group.content.items():
            probe = self._probes.get((group.scenario, label))
            if probe is None or probe.content_hash() != content:
                raise ReleaseRefused(
                    ReleaseStatus.NOT_REPRODUCED,
                    "a scenario is missing"
                    if probe is None
                    else "a scenario is another one than the run measured",
                    field=f"{group.scenario}-{label}",
                    found="none" if probe is None else f"content {probe.content_hash()}",
                    expected=f"content {content}, as run {self._run.id} recorded it",
                    hint="take the scenario files of the run's own commit",
                )

    def _recomputed(self, line: VerdictRecord) -> Recomputed:
        recorded, name = line.verdict, line.name
        if line.error is not None or (
            line.judge_input is None
            and not line.judgements
            and recorded in (Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE)
        ):
            why = line.error.error_class if line.error else line.reason
            text = f"{name}: {recorded.value} without numbers: {why}"
            return Recomputed(self._run.id, name, recorded, None, not_recomputed=(text,))
        given = line.judge_input or {}
        self._require_version(name, given)
        self._raw.differences, self._raw.from_records = [], []
        try:
            built = self._input(line)
            judged = judge(built)
        except (PerfgateError, KeyError) as error:
            text = f"{name}: cannot be judged from the raw files: {str(error).splitlines()[0]}"
            return Recomputed(self._run.id, name, recorded, None, (text,))
        differences = [
            *self._raw.differences,
            *_differences(f"{name}: judge_input", given, built.as_record()),
            *_differences(name, _plain(line.judgements), _plain(judged.judgements)),
            *_differences(name, recorded.value, judged.verdict.value),
        ]
        return Recomputed(
            self._run.id,
            name,
            recorded,
            judged.verdict,
            tuple(dict.fromkeys(differences)),
            tuple(dict.fromkeys(self._raw.from_records)),
            sum(one.measured is not None for one in judged.judgements),
        )

    def _require_version(self, name: str, given: Mapping[str, Any]) -> None:
        """Check that this perfgate can judge what was recorded."""
        perfgate = f"perfgate {self._run.facts['versions'].get('perfgate')}"
        for field, expected in (("schema_version", SCHEMA_VERSION), ("rule_version", VERSION)):
            if (found := given.get(field)) != expected:
                raise ReleaseRefused(
                    ReleaseStatus.OTHER_VERSION,
                    "what a verdict rests on was not kept, or is of another version",
                    file=self._run.folder / "records.jsonl",
                    field=f"{name}: judge_input.{field}",
                    found="none" if found is None else found,
                    expected=f"{expected}, which this perfgate has",
                    hint=f"install {perfgate}, which judged it, or measure again",
                )

    def _input(self, line: VerdictRecord) -> JudgeInput:
        """The input of a verdict, assembled again.

        Raises:
            InputError, RunError: the files cannot be judged.
            KeyError: the record names a start, a probe or a claim that is not there.
        """
        name, raw = line.name, self._raw
        origin = provenance_of(line) or Provenance()
        if name in self._claims:
            claim = self._claims[name]
            sides = zip(claim.probes, origin.sides, strict=True)
            return claim_input(claim, {probe: raw.side(probe, one) for probe, one in sides})
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
        builds = origin.controls or ControlSources("auto")
        points = []
        for probe in curve.probes:
            of_point = origin.points[probe.label]
            points.append(self._raw.evidence(probe, of_point, of_point.controls or builds))
        built = curve_input(curve, points, rule)
        return built.waived_by(self._raw.waivers(origin), self._raw.day)

    def _of_probe(self, probe: Probe, origin: Provenance, rule: Rule) -> JudgeInput:
        raw = self._raw
        if origin.sides:  # an A/B
            a, b = (raw.measurements(probe, one.role, one.starts) for one in origin.sides)
            if probe.is_smoke:
                return smoke_input(probe, {"A": [*a.values()], "B": [*b.values()]})
            return ab_input(probe, [*a.values()], [*b.values()], origin.noise)
        if probe.is_smoke:
            now = raw.measurements(probe, origin.role, origin.starts)
            return smoke_input(probe, {"": [*now.values()]})
        built = probe_input(raw.evidence(probe, origin, origin.controls), rule)
        return built.waived_by(raw.waivers(origin), raw.day)

    def _broken_answers(self, scenario: Scenario, recorded: str) -> str:
        """Why the speed of a build says nothing, by its answers in the same run."""
        judged = {}
        for probe in sorted(all_probes(scenario), key=order):
            line = self._verdicts.get(probe.id)
            if probe.is_load or probe.is_smoke or not self._raw.fingerprint(probe, "new"):
                continue
            if line is None or line.error is not None:
                self._raw.from_records.append(f"whether the answers of {probe.label} are broken")
                return recorded
            if line.judge_input is not None:
                judged[probe.label] = judge(self._input(line))
        return broken_answers(judged)


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
        yield f"{place}: {shown(recorded)} in the records, {shown(found)} from the raw files"


def _is_equal(recorded: object, found: object) -> bool:
    if isinstance(recorded, float) and isinstance(found, float):
        return math.isclose(recorded, found, rel_tol=_CLOSE, abs_tol=1e-12)
    return recorded == found
