"""`perfgate baseline diff`: what moved between two baselines; `promote` shows it the same way."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from perfgate.baselines import Baseline, read, suite_store
from perfgate.baselines.engine_repo import same_hash
from perfgate.cli.output import add_format, answer, table
from perfgate.core.errors import InputError
from perfgate.judging.acceptance import ProbeChanges, Promotion, compare
from perfgate.reports.proposal_text import CHANGE_COLUMNS, CHANGES, change_cells

_COLUMNS = (*CHANGE_COLUMNS, "answers")


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of `diff`."""
    verb.add_argument("before", metavar="A", help="a baseline's file, or its engine commit")
    verb.add_argument("after", metavar="B", help="the other, likewise")
    verb.add_argument("--scenario", metavar="ID", help="with commits: the scenario")
    verb.add_argument("--hardware", metavar="LABEL", help="with commits: the hardware, e.g. 8xB200")
    add_format(verb, markdown=True)
    verb.set_defaults(execute=_diff)


def print_promotion(promotion: Promotion) -> None:
    """What accepting a candidate changes, for a person."""
    print(f"compared with: {_compared_with(promotion)}")
    print(table(_COLUMNS, _rows(promotion.probes)))
    notes = (f"note: {note}" for note in promotion.notes)
    change = f"change: {CHANGES[promotion.change]}"
    print(*_not_comparable(promotion.probes), change, *notes, sep="\n")


def plain_promotion(promotion: Promotion) -> dict[str, object]:
    """The same for a script."""
    return {
        "baseline": str(promotion.file),
        "written": promotion.written,
        "change": promotion.change,
        "compared_with": _compared_with(promotion),
        "changes": [_plain_probe(probe) for probe in promotion.probes],
        "notes": list(promotion.notes),
    }


def _compared_with(promotion: Promotion) -> str:
    if promotion.before is None:
        return "nothing, there is no baseline yet"
    engine = promotion.before.baseline.engine
    return f"{engine.name} {engine.version}, commit {engine.commit} ({promotion.before.why})"


def _plain_probe(probe: ProbeChanges) -> dict[str, object]:
    metrics = [
        {name: value for name, value in asdict(one).items() if name != "probe"}
        for one in probe.metrics
    ]
    return {"probe": probe.probe, "metrics": metrics, "differing_facts": list(probe.facts)}


def _diff(arguments: argparse.Namespace) -> int:
    before, after = (
        _found(text, arguments.scenario, arguments.hardware)
        for text in (arguments.before, arguments.after)
    )
    if before.scenario != after.scenario:
        raise InputError(
            "baselines of two scenarios have nothing to compare",
            found=f"{before.scenario}, {after.scenario}",
            expected="two baselines of one scenario",
        )
    labels = sorted({*before.entries, *after.entries})
    probes = [compare(one, before.entries.get(one), after.entries.get(one)) for one in labels]
    plain = {"before": str(before.file), "after": str(after.file)}
    sides = (
        f"{name}: {one.engine.name} {one.engine.version}, commit {one.engine.commit}, "
        f"{one.hardware}, {one.scenario}, accepted {one.accepted_at[:10]} by {one.accepted_by}"
        for name, one in (("A", before), ("B", after))
    )
    # `differences` speaks of a measurement and a baseline: here B and A.
    facts = (
        fact.replace("measured ", "B ", 1).replace(", baseline ", ", A ", 1)
        for fact in _not_comparable(probes)
    )
    return answer(
        arguments,
        {**plain, "changes": [_plain_probe(probe) for probe in probes]},
        *sides,
        f"\n{table(_COLUMNS, _rows(probes), arguments.format)}",
        *(f"\n{fact}" for fact in facts),
    )


def _not_comparable(probes: Sequence[ProbeChanges]) -> Iterator[str]:
    for probe in probes:
        yield from (f"not comparable: {probe.probe} {fact}" for fact in probe.facts)


def _found(text: str, scenario: str | None, hardware: str | None) -> Baseline:
    """The baseline that a file, or a commit in the suite's store, names."""
    path = Path(text)
    if path.suffix == ".json" or path.is_file():
        return read(path)
    paths = [
        one
        for one in suite_store().list()
        if same_hash(one.stem, text)
        and scenario in (None, one.parent.name)
        and hardware in (None, one.parent.parent.name)
    ]
    if len(paths) != 1:
        where = [f"{one.parent.parent.name}/{one.parent.name}" for one in paths]
        raise InputError(
            f"several baselines match {text}" if paths else "no baseline of this commit",
            field="--scenario" if len({one.parent.name for one in paths}) > 1 else None,
            found=", ".join(where) or text,
            expected="a file, or a commit with --scenario and --hardware that leave one",
            hint="`perfgate baseline list` shows them all",
        )
    return read(paths[0])


def _rows(probes: Sequence[ProbeChanges]) -> list[tuple[str, ...]]:
    return [
        (
            *change_cells(change),
            "" if change.lost is None else f"{change.lost} lost, {change.gained} gained",
        )
        for probe in probes
        for change in probe.metrics
    ]
