"""Recomputation: the verdicts of a run, judged again from its raw files.

The input of each verdict is assembled as the run assembled it, from what its programs wrote, the
baselines and waivers that it kept, and the scenarios. It is compared field by field with the
recorded one and judged by the same function. What no file holds is taken from the record and named.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

from perfgate.campaign.probe_state import smoke_input
from perfgate.campaign.resume import judgements_of, provenance_of
from perfgate.core.errors import PerfgateError
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.rule import VERSION, Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.ab import ab_input
from perfgate.judging.assembly.claims import claim_input
from perfgate.judging.assembly.judge_input import (
    SCHEMA_VERSION,
    ControlSources,
    JudgeInput,
    Provenance,
    broken_answers,
    judge,
)
from perfgate.judging.assembly.judgement import probe_input
from perfgate.judging.assembly.sweeps import SweepProbe, curve_input, sweep_probes
from perfgate.release.raw_measurements import RawRun, shown
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.required_tests import SuiteTests
from perfgate.runs.ended_run import EndedRun, Line
from perfgate.scenarios.probe import Probe, all_probes, order
from perfgate.scenarios.scenario import Scenario

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
    return _Recomputation(run, suite).all()


def probes_by_label(scenarios: Iterable[Scenario]) -> dict[tuple[str, str], Probe]:
    """Scenario and label → probe."""
    return {(one.id, probe.label): probe for one in scenarios for probe in all_probes(one)}


class Change(NamedTuple):
    """A probe whose scenario is not what a run measured.

    Attributes:
        scenario, probe: which.
        now: hash of its content; empty: it is gone.
        measured: hash of what the run measured.
    """

    scenario: str
    probe: str
    now: str
    measured: str


def changed_scenarios(run: EndedRun, probes: Mapping[tuple[str, str], Probe]) -> Iterator[Change]:
    """The probes of a run that are not as it measured them.

    Args:
        run: its records have the hashes.
        probes: scenario and label → probe, as the files have it now.
    """
    for group in run.lines("group"):
        for label, measured in group["content"].items():
            probe = probes.get((group["scenario"], label))
            now = probe.content_hash() if probe else ""
            if now != measured:
                yield Change(group["scenario"], label, now, measured)


class _Recomputation:
    def __init__(self, ended: EndedRun, suite: SuiteTests) -> None:
        self._run = ended
        self._raw = RawRun(ended)
        self._probes = probes_by_label(suite.scenarios)
        curves = (curve for scenario in suite.scenarios for curve in sweep_probes(scenario))
        self._curves = {curve.id: curve for curve in curves}
        self._claims = {claim.id: claim for claim in suite.claims}
        self._verdicts = {str(line["name"]): line for line in ended.lines("verdict")}

    def all(self) -> tuple[Recomputed, ...]:
        """Every verdict of the run."""
        for change in changed_scenarios(self._run, self._probes):
            raise ReleaseRefused(
                ReleaseStatus.NOT_REPRODUCED,
                "a scenario is another one than the run measured"
                if change.now
                else "a scenario is missing",
                field=f"{change.scenario}-{change.probe}",
                found=f"content {change.now}" if change.now else "none",
                expected=f"content {change.measured}, as run {self._run.id} recorded it",
                hint="take the scenario files of the run's own commit",
            )
        return tuple(map(self._recomputed, self._run.lines("verdict")))

    def _recomputed(self, line: Line) -> Recomputed:
        recorded, name = Verdict(line["verdict"]), str(line["name"])
        if line.get("error") is not None or (
            line.get("judge_input") is None
            and not line["judgements"]
            and recorded in (Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE)
        ):
            why = line["error"]["class"] if line.get("error") else line["reason"]
            text = f"{name}: {recorded.value} without numbers: {why}"
            return Recomputed(self._run.id, name, recorded, None, not_recomputed=(text,))
        given = line.get("judge_input") or {}
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
            *_differences(name, _plain(judgements_of(line)), _plain(judged.judgements)),
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

    def _input(self, line: Line) -> JudgeInput:
        """The input of a verdict, assembled again.

        Raises:
            InputError, RunError: the files cannot be judged.
            KeyError: the record names a start, a probe or a claim that is not there.
        """
        name, raw = str(line["name"]), self._raw
        origin = provenance_of(line) or Provenance()
        if name in self._claims:
            claim = self._claims[name]
            sides = zip(claim.probes, origin.sides, strict=True)
            return claim_input(claim, {probe: raw.side(probe, one) for probe, one in sides})
        subject = self._curves.get(name) or self._probes[line["scenario"], line["probe"]]
        most = from_plain(Rule, line["judge_input"]["rule"]).max_runs
        rule = Rule(max_runs=min(most, subject.scenario.gate.max_starts))
        if isinstance(subject, SweepProbe):
            built = self._of_curve(subject, origin, rule)
        else:
            built = self._of_probe(subject, origin, rule)
            if not subject.is_load:
                return built
        recorded = line["judge_input"]["broken"]
        return replace(built, broken=self._broken_answers(subject.scenario, recorded))

    def _of_curve(self, curve: SweepProbe, origin: Provenance, rule: Rule) -> JudgeInput:
        builds = origin.controls or ControlSources("auto")
        points = [
            self._raw.point(probe, origin.points[probe.label], builds) for probe in curve.probes
        ]
        why_not = builds.why_not.get("baseline", "")
        built = curve_input(curve, points, rule, why_not, builds.policy)
        return built.waived_by(self._raw.waivers(origin), self._raw.day)

    def _of_probe(self, probe: Probe, origin: Provenance, rule: Rule) -> JudgeInput:
        raw = self._raw
        if origin.sides:  # an A/B
            a, b = (raw.measurements(probe, one.role, one.starts) for one in origin.sides)
            if probe.is_smoke:
                return smoke_input(probe, {"A": [*a.values()], "B": [*b.values()]})
            return ab_input(probe, [*a.values()], [*b.values()], origin.noise)
        now = [*raw.measurements(probe, origin.role, origin.starts).values()]
        if probe.is_smoke:
            return smoke_input(probe, {"": now})
        built = probe_input(
            probe,
            raw.reference(probe, origin),
            now,
            raw.fingerprint(probe, origin.role),
            rule,
            raw.controls(probe, origin.controls),
        )
        return built.waived_by(raw.waivers(origin), raw.day)

    def _broken_answers(self, scenario: Scenario, recorded: str) -> str:
        """Why the speed of a build says nothing, by its answers in the same run."""
        judged = {}
        for probe in sorted(all_probes(scenario), key=order):
            line = self._verdicts.get(probe.id)
            if probe.is_load or probe.is_smoke or not self._raw.fingerprint(probe, "new"):
                continue
            if line is None or line.get("error") is not None:
                self._raw.from_records.append(f"whether the answers of {probe.label} are broken")
                return recorded
            if line.get("judge_input") is not None:
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
