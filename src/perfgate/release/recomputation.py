"""Recomputation: the verdicts of a run, computed anew from its raw files.

The way of a measurement is walked again: the programs' own files, the parsers, the baselines that
the run kept, the gate. What no file holds is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.campaign.resume import basis_of, judgements_of
from perfgate.core.errors import PerfgateError
from perfgate.core.rule import VERSION, Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.basis import Basis
from perfgate.release.judgement_differences import judgement_differences
from perfgate.release.rejudgement import Rejudgement
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Claim, Scenario

Line = Mapping[str, Any]


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
        self._judging = Rejudgement(ended, scenarios, claims)

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
        try:
            judged, used = self._judging.judged(name, line, basis)
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
