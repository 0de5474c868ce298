"""Recomputation: the verdicts of a run, computed anew from its raw files.

The way of a measurement is walked again: the programs' own files, the parsers, the baselines that
the run kept, the gate. What no file holds is named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.baselines.baseline import ChosenBaseline, Entry, Window
from perfgate.baselines.file import read, read_head
from perfgate.baselines.waivers import waive
from perfgate.campaign.probe_state import of_broken_answers
from perfgate.campaign.resume import basis_of, judgements_of
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.measurement import Measurement
from perfgate.gate.claim_evidence import EarlierStarts
from perfgate.gate.probe import ProbeJudgement
from perfgate.gate.rule import VERSION, Rule
from perfgate.gate.verdict import Judgement, Verdict
from perfgate.release.judgement_differences import judgement_differences
from perfgate.release.raw_measurements import RawMeasurement, key_of, read_again
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.runs.folder_contents import REFERENCES
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, Scenario
from perfgate.verdicts.basis import Basis, BasisControls, ClaimSide
from perfgate.verdicts.claims import ClaimProbe, claim_probes
from perfgate.verdicts.control_starts import ControlStarts
from perfgate.verdicts.documented_values import judge_measured_claim
from perfgate.verdicts.judgement import Reference, judge, with_waivers
from perfgate.verdicts.sweeps import Point, SweepProbe, judge_curve, sweep_probes

Line = Mapping[str, Any]
Key = tuple[str, str, str, int]
_KEPT = re.compile(r"(\w[\w.+-]*/){2}\w[\w.+-]*\.json", re.ASCII)


@dataclass(frozen=True)
class Recomputed:
    """One verdict, computed anew.

    Attributes:
        run: id of the run.
        test: id of the probe, curve or claim.
        recorded: the verdict that the run's records have; None: it has none.
        verdict: what the raw files give; None: it cannot be computed.
        differences: what is not as recorded, one line each, with both numbers; empty: all is.
        not_recomputed: what was taken from the records, as no file holds it, one line each.
        metrics: gating metrics whose judgement was computed anew.
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
    """Compute the verdicts of a run anew.

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
    ended = read_run(run)
    return _Recomputation(ended, scenarios, claims).all()


class _Recomputation:
    def __init__(
        self, ended: EndedRun, scenarios: Sequence[Scenario], claims: Sequence[Claim]
    ) -> None:
        self._run = ended
        self._probes = {
            (one.id, probe.label): probe for one in scenarios for probe in all_probes(one)
        }
        self._curves = {one.id: one for scenario in scenarios for one in sweep_probes(scenario)}
        self._claims = {one.id: one for one in claim_probes(claims, scenarios)}
        self._lines = {
            key_of(line): line for line in ended.records if line["record"] == "measurement"
        }
        self._raw: dict[Key, RawMeasurement] = {}

    def all(self) -> tuple[Recomputed, ...]:
        """Every verdict of the run."""
        verdicts = [line for line in self._run.records if line["record"] == "verdict"]
        for line in self._run.records:
            if line["record"] == "group":
                self._require_content(line)
        return tuple(self._recomputed(line) for line in verdicts)

    def _require_content(self, group: Line) -> None:
        for label, content in group["content"].items():
            probe = self._probes.get((group["scenario"], label))
            if probe is None or probe.content_hash() != content:
                raise ReleaseRefused(
                    ReleaseStatus.NOT_REPRODUCED,
                    "a scenario is missing"
                    if probe is None
                    else "a scenario is another one than the run measured",
                    field=f"{group['scenario']}-{label}",
                    found="none" if probe is None else f"content {probe.content_hash()}",
                    expected=f"content {content}, as run {self._run.id} recorded it",
                    hint="take the scenario files of the run's own commit",
                )

    def _recomputed(self, line: Line) -> Recomputed:
        recorded = Verdict(line["verdict"])
        name = str(line["name"])
        basis = basis_of(line)
        if line.get("error") is not None or (
            not line["judgements"] and recorded in (Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE)
        ):
            why = line["error"]["class"] if line.get("error") else line["reason"]
            told = f"{name}: {recorded.value} without numbers: {why}"
            return Recomputed(self._run.id, name, recorded, None, not_recomputed=(told,))
        if basis is None:
            raise ReleaseRefused(
                ReleaseStatus.OTHER_VERSION,
                "the run did not keep what its verdicts rest on",
                file=self._run.folder / "records.jsonl",
                field=name,
                found=f"perfgate {self._run.facts['versions'].get('perfgate')}",
                expected="a run of a perfgate that records `basis` with each verdict",
                hint="measure again with this perfgate",
            )
        if basis.rule_version != VERSION:
            raise ReleaseRefused(
                ReleaseStatus.OTHER_VERSION,
                "the run was judged by another version of the gate's rule",
                file=self._run.folder / "records.jsonl",
                field=name,
                found=f"rule {basis.rule_version}",
                expected=f"rule {VERSION}, which this perfgate has",
                hint=f"install perfgate {self._run.facts['versions'].get('perfgate')}, which "
                "judged it",
            )
        used: list[RawMeasurement] = []
        try:
            judged = self._judged(name, line, basis, used)
        except (PerfgateError, KeyError) as error:
            told = f"{name}: cannot be judged from the raw files: {str(error).splitlines()[0]}"
            return Recomputed(self._run.id, name, recorded, None, (told,))
        differences = [told for one in used for told in one.differences]
        differences += _unusual_rule(name, basis)
        differences += judgement_differences(name, judgements_of(line), judged.judgements)
        if judged.verdict != recorded:
            told = f"{recorded.value} in the records, {judged.verdict.value} from the raw files"
            differences.append(f"{name}: {told}")
        return Recomputed(
            self._run.id,
            name,
            recorded,
            judged.verdict,
            tuple(dict.fromkeys(differences)),
            tuple(
                dict.fromkeys(
                    [*(told for one in used for told in one.from_records), *_from_records(basis)]
                )
            ),
            sum(one.measured is not None for one in judged.judgements),
        )

    def _judged(
        self, name: str, line: Line, basis: Basis, used: list[RawMeasurement]
    ) -> ProbeJudgement:
        if name in self._claims:
            judgement = self._claim(self._claims[name], basis, used)
            return ProbeJudgement(judgement.verdict, (judgement,))
        if name in self._curves:
            return self._curve(self._curves[name], basis, used)
        probe = self._probes[line["scenario"], line["probe"]]
        now = self._taken(probe, basis.role, basis.starts, used)
        if probe.is_smoke:
            return ProbeJudgement(Verdict.PASS)
        judged = judge(
            probe,
            self._reference(probe, basis, used),
            now,
            basis.fingerprint,
            basis.rule,
            self._controls(probe, basis.controls, used),
        )
        judged = self._waived(probe.scenario, probe.label, basis, judged)
        return of_broken_answers(judged, basis.broken) if basis.broken else judged

    def _curve(self, sweep: SweepProbe, basis: Basis, used: list[RawMeasurement]) -> ProbeJudgement:
        points = []
        for probe in sweep.probes:
            of_point = basis.points[probe.label]
            reference = self._reference(probe, of_point, used)
            entry = reference.entry
            now = self._taken(probe, of_point.role, of_point.starts, used)
            controls = self._controls(probe, of_point.controls, used)
            known = None if controls is None else controls.measured.get("baseline")
            numbers = of_point.controls.starts.get("baseline", ()) if of_point.controls else ()
            points.append(
                Point(
                    probe,
                    entry,
                    entry.differences(of_point.fingerprint) if entry else (),
                    dict(zip(of_point.starts, now, strict=True)),
                    None if known is None else dict(zip(numbers, known, strict=True)),
                    of_point.noise,
                )
            )
        builds = basis.controls or BasisControls("auto")
        why_not = builds.why_not.get("baseline", "")
        judged = judge_curve(sweep, points, basis.rule, why_not, builds.policy)
        judged = self._waived(sweep.scenario, sweep.label, basis, judged)
        return of_broken_answers(judged, basis.broken) if basis.broken else judged

    def _claim(self, claim: ClaimProbe, basis: Basis, used: list[RawMeasurement]) -> Judgement:
        given: list[Sequence[Measurement]] = []
        earlier: EarlierStarts | None = None
        for probe, side in zip(claim.probes, basis.sides, strict=True):
            if side.baseline:
                entry = self._entry(side)
                metric = claim.claim.metric
                given.append(
                    [
                        Measurement(one.metrics, {}, one.answers)
                        for one in entry.runs
                        if metric in one.metrics
                    ]
                )
                which = "new" if probe == claim.probe else "other"
                earlier = EarlierStarts(which, entry.sessions(metric))  # type: ignore[arg-type]
            else:
                given.append(self._taken(probe, side.role, side.starts, used))
        return judge_measured_claim(
            claim.claim,
            given[0],
            given[1] if len(given) > 1 else (),
            nodes=claim.scenario.hardware.nodes,
            earlier=earlier,
            own_noise=claim.own_noise,
        )

    def _entry(self, side: ClaimSide) -> Entry:
        return read(self._kept(side.baseline)).entries[side.probe]

    def _kept(self, name: str) -> Path:
        """A file of the run's kept references; no name leads out of them."""
        if not _KEPT.fullmatch(name):
            raise InputError(
                "no file of the run's references",
                file=self._run.folder / "records.jsonl",
                field="basis",
                found=name,
                expected="<hardware>/<scenario>/<commit>.json",
            )
        return self._run.folder / REFERENCES / name

    def _reference(self, probe: Probe, basis: Basis, used: list[RawMeasurement]) -> Reference:
        if basis.own_starts:
            starts = self._read(probe, "reference", basis.own_starts, used)
            entry = Entry(basis.fingerprint, tuple(one.as_run(self._run.id) for one in starts))
            return Reference(
                entry, noise=basis.noise, takes_turns=basis.takes_turns, earlier=basis.earlier
            )
        return Reference(
            self._stored(probe, basis.window),
            basis.documented,
            self._stored(probe, (basis.anchor,) if basis.anchor else ()),
            basis.noise,
        )

    def _stored(self, probe: Probe, window: Sequence[str]) -> Entry | None:
        """A probe's part of baselines that the run kept."""
        heads = tuple(read_head(self._kept(name)) for name in window)
        if not heads:
            return None
        stored = Window(heads, read)
        return ChosenBaseline(stored[0], "", stored).entry(probe.label)

    def _controls(
        self, probe: Probe, controls: BasisControls | None, used: list[RawMeasurement]
    ) -> ControlStarts | None:
        if controls is None:
            return None
        measured = {
            against: self._taken(probe, f"{against}_control", starts, used)
            for against, starts in controls.starts.items()
        }
        return ControlStarts(controls.policy, measured, controls.why_not)

    def _waived(
        self, scenario: Scenario, label: str, basis: Basis, judged: ProbeJudgement
    ) -> ProbeJudgement:
        return with_waivers(
            judged,
            lambda judgements: waive(
                judgements,
                scenario=scenario.id,
                hardware=scenario.hardware.label,
                probe=label,
                waivers=basis.waivers,
                today=basis.today,
            ),
        )

    def _taken(
        self, probe: Probe, role: str, starts: Sequence[int], used: list[RawMeasurement]
    ) -> list[Measurement]:
        return [one.measurement for one in self._read(probe, role, starts, used)]

    def _read(
        self, probe: Probe, role: str, starts: Sequence[int], used: list[RawMeasurement]
    ) -> list[RawMeasurement]:
        found = []
        for start in starts:
            key = (probe.scenario.id, probe.label, role, start)
            if key not in self._raw:
                self._raw[key] = read_again(self._run.folder, self._lines[key], probe)
            found.append(self._raw[key])
        used += found
        return found


def _unusual_rule(name: str, basis: Basis) -> list[str]:
    """Error rates that are not those of the rule."""
    usual = Rule(max_runs=basis.rule.max_runs)
    return [f"{name}: judged by {basis.rule}, not {usual}"] if basis.rule != usual else []


def _from_records(basis: Basis) -> list[str]:
    """What of a basis no file of the run holds."""
    bases = [basis, *basis.points.values()]
    told = []
    if any(one.noise for one in bases):
        told.append("the noise of one fresh start, learnt from the hardware's history")
    if any(one.earlier for one in bases):
        told.append("what the machine measured of itself in earlier sessions")
    if any(one.documented for one in bases):
        told.append("the documented values")
    return told
