"""The verbs of `perfgate scenarios`; what runs all but `command`."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from perfgate.campaign.selection import markers_of_selected
from perfgate.cli.output import add_format, answer, table, verb_maker
from perfgate.cli.scenario_choice import add_folder, add_import, add_selection, load, selected
from perfgate.cli.scenarios import command as command_verb
from perfgate.core.measurement import Json
from perfgate.core.metrics import lookup
from perfgate.core.redaction import mask_plain
from perfgate.judging.assembly.bands import Band, gating_bands
from perfgate.judging.assembly.claims import claims_of_suite
from perfgate.plan.toolchain import registered
from perfgate.scenarios.documented import documented_values, speed_from
from perfgate.scenarios.files import LoadedSuite, load_suite
from perfgate.scenarios.markers import markers_of
from perfgate.scenarios.scenario import Scenario, scenario_to_plain
from perfgate.scenarios.selection import pick

_GatingBands = Mapping[str, tuple[Band, ...]]

_COLUMNS = ("id", "hardware", "engine", "speed", "markers", "title", "bands")
_FIRST_RUN = (
    "\nspeed, first run: no document gives one. Without a baseline the first run records one "
    "(pytest --record),\nwhich a person promotes (perfgate baseline promote)."
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's verbs."""
    make = verb_maker(command)

    verb = make("list", "list scenarios, one per line", _list)
    add_selection(verb)
    markers = "list the markers and their meanings instead"
    verb.add_argument("--markers", action="store_true", help=markers)
    add_format(verb)

    summary = "show a scenario with documented values and source; secrets masked"
    verb = make("show", summary, _show)
    verb.add_argument("id", help="the scenario's id")
    add_folder(verb)
    add_format(verb)

    summary = "print what a run would start, as a script or JSON"
    command_verb.add_options(make("command", summary))

    verb = make("validate", "check scenario files and report all errors", _validate)
    verb.add_argument("file", nargs="*", type=Path, help="files or folders (default: the suite's)")
    add_import(verb)
    add_format(verb)


def _list(arguments: argparse.Namespace) -> int:
    suite = load(arguments.scenarios)
    scenarios = selected(arguments, suite)
    if arguments.markers:
        return _list_markers(arguments, suite, scenarios)
    bands = [_gating_bands(scenario) for scenario in scenarios]
    plain = [_plain(scenario, suite, own) for scenario, own in zip(scenarios, bands, strict=True)]
    rows = [
        [
            ",".join(one["markers"]) if name == "markers" else str(one[name])
            for name in _COLUMNS[:-1]
        ]
        + [_bands_text(own)]
        for one, own in zip(plain, bands, strict=True)
    ]
    is_first = any(one["speed"] == "first run" for one in plain)
    return answer(arguments, plain, table(_COLUMNS, rows), *([_FIRST_RUN] if is_first else []))


def _list_markers(
    arguments: argparse.Namespace, suite: LoadedSuite, scenarios: Sequence[Scenario]
) -> int:
    """Every marker that is declared, with how many of the scenarios and their claims have it."""
    count = Counter(marker for scenario in scenarios for marker in markers_of(scenario))
    selected_ids = {scenario.id for scenario in scenarios}
    claims = Counter(
        marker
        for claim in claims_of_suite(suite)
        if claim.scenario.id in selected_ids
        for marker in markers_of_selected(claim)
    )
    entries = [
        {"marker": name, "scenarios": count[name], "claims": claims[name], "meaning": meaning}
        for name, meaning in sorted(suite.markers.items())
    ]
    rows = [tuple(str(field) for field in entry.values()) for entry in entries]
    return answer(arguments, entries, table(("marker", "scenarios", "claims", "meaning"), rows))


def _plain(scenario: Scenario, suite: LoadedSuite, bands: _GatingBands) -> dict[str, Any]:
    return {
        "id": scenario.id,
        "title": scenario.title,
        "hardware": scenario.hardware.label,
        "engine": scenario.engine.name,
        "speed": speed_from(scenario, suite.claims),
        "model": scenario.model.name,
        "markers": list(markers_of(scenario)),
        "document": scenario.source.document,
        "section": scenario.source.section,
        "bands": _bands(bands),
    }


def _gating_bands(scenario: Scenario) -> _GatingBands:
    documented = documented_values(scenario)
    return gating_bands(scenario, {} if documented is None else documented.values)


def _bands(gating: _GatingBands) -> dict[str, Json]:
    """Gating metric → its bands, each with what it is compared with and the band's source."""
    return {
        metric: [
            {"against": band.against, "band": band.loss, "source": band.source} for band in bands
        ]
        for metric, bands in gating.items()
    }


def _bands_text(gating: _GatingBands) -> str:
    """Each band with its source and the metrics that have it."""
    all_bands = [band for bands in gating.values() for band in bands]
    metrics: dict[str, dict[str, None]] = {}
    for band in sorted(all_bands, key=lambda band: band.against):
        metrics.setdefault(band.describe(), {})[band.metric] = None
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in metrics.items())


def _show(arguments: argparse.Namespace) -> int:
    scenario = pick(load(arguments.scenarios).scenarios, arguments.id)
    written = scenario_to_plain(scenario)
    if not scenario.gate.bands and isinstance(written["gate"], dict):
        del written["gate"]["bands"]  # an empty one would read as if no metric had a band
    more = {"bands": _bands(_gating_bands(scenario)), "documented": _documented(scenario)}
    plain = mask_plain({**written, **more})
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return answer(arguments, plain, text.removesuffix("\n"))


def _documented(scenario: Scenario) -> dict[str, Json]:
    """Canonical metric name → documented value with its unit and source."""
    documented = documented_values(scenario)
    if documented is None:
        return {}
    source = _given(documented.source)
    return {
        name: {
            "value": value.value,
            "unit": lookup(name).unit,
            **_given(value),
            "source": dict(source),
        }
        for name, value in documented.values.items()
    }


def _given(value: object) -> dict[str, Json]:
    """The fields that are known."""
    return {name: field for name, field in vars(value).items() if field is not None}


def _validate(arguments: argparse.Namespace) -> int:
    suite = load_suite(arguments.file, registered()) if arguments.file else load(None)
    plain = {"valid": True, "scenarios": [scenario.id for scenario in suite.scenarios]}
    return answer(arguments, plain, f"{len(suite.scenarios)} scenarios, all valid")
