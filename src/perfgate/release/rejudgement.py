"""Rejudgement: one verdict, judged anew from raw files and from what its record says it rests on.

As the campaign judged it (`campaign.campaign_state`, `campaign.claim_sides`), with the numbers read
again (`raw_measurements`) and the baselines that the run kept.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.baselines.baseline import ChosenBaseline, Entry, Window
from perfgate.baselines.file import read, read_head
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.basis import Basis, BasisControls, ClaimSide
from perfgate.judging.assembly.claims import ClaimProbe, claim_probes
from perfgate.judging.assembly.control_starts import ControlStarts
from perfgate.judging.assembly.documented_values import judge_measured_claim
from perfgate.judging.assembly.judgement import Reference, concluded, judge
from perfgate.judging.assembly.sweeps import Point, SweepProbe, judge_curve, sweep_probes
from perfgate.judging.rules.claims import EarlierStarts
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.release.raw_measurements import RawMeasurement, key_of, read_again
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.folder_contents import REFERENCES
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Claim, Scenario

Line = Mapping[str, Any]
Key = tuple[str, str, str, int]
_KEPT = re.compile(r"[1-9]\d*/(\w[\w.+-]*/){2}\w[\w.+-]*\.json", re.ASCII)


class Rejudgement:
    """The tests of one run.

    Args:
        ended: the run.
        scenarios: all that the suite has, as the run was made with them.
        claims: likewise.
    """

    def __init__(
        self, ended: EndedRun, scenarios: Sequence[Scenario], claims: Sequence[Claim]
    ) -> None:
        self._run = ended
        self._probes = {
            (one.id, probe.label): probe for one in scenarios for probe in all_probes(one)
        }
        self._curves = {one.id: one for scenario in scenarios for one in sweep_probes(scenario)}
        known = claims_of(scenarios, claims)  # floors are claims, too
        self._claims = {one.id: one for one in claim_probes(known, scenarios)}
        self._lines = {
            key_of(line): line for line in ended.records if line["record"] == "measurement"
        }
        self._raw: dict[Key, RawMeasurement] = {}

    def judged(
        self, name: str, line: Line, basis: Basis
    ) -> tuple[ProbeJudgement, list[RawMeasurement]]:
        """A verdict, and the measurements that it rests on.

        Args:
            name: of the test.
            line: the record of its verdict.
            basis: what that says that it rests on.

        Raises:
            InputError, RunError: the files cannot be judged.
            KeyError: the record names a start, a probe or a claim that is not there.
        """
        used: list[RawMeasurement] = []
        return self._judged(name, line, basis, used), used

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
        return _concluded(probe.scenario, probe.label, basis, judged)

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
        return _concluded(sweep.scenario, sweep.label, basis, judged)

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
                expected="<number>/<hardware>/<scenario>/<commit>.json",
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


def _concluded(
    scenario: Scenario, label: str, basis: Basis, judged: ProbeJudgement
) -> ProbeJudgement:
    return concluded(judged, scenario, label, basis.waivers, basis.today, basis.broken)
