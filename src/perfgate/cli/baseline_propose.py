"""`perfgate baseline propose`: new baselines as a branch or a patch, with their evidence.

Exit status: 0 proposed; 2 refused or wrong usage, and then nothing was made.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from perfgate.baselines import Baseline, Store, candidate_store, read
from perfgate.baselines.candidates import keep
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import question_files
from perfgate.baselines.gate_repo import GateRepo, gate_repo
from perfgate.baselines.noise_history import keep_noise
from perfgate.baselines.noise_history import read as read_noise
from perfgate.baselines.proposable_runs import require_proposable
from perfgate.baselines.recording import candidates_of
from perfgate.cli.output import add_format, print_json
from perfgate.cli.scenario_choice import add_import, load
from perfgate.core.durable_files import write_text
from perfgate.core.errors import InputError
from perfgate.core.paths import baselines_folder
from perfgate.core.redaction import redact, visible
from perfgate.judging.acceptance.promotion import losses_of, promote
from perfgate.judging.acceptance.proposal import (
    Bands,
    Held,
    Proposal,
    held_against,
    is_unchanged,
    losses_in,
    noise_of,
)
from perfgate.judging.assembly.bands import band_of
from perfgate.reports.proposal_text import body, message, subject
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.runs.folder_contents import CANDIDATES
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of `propose`."""
    add = verb.add_argument
    several = "a run folder; several, of one engine commit, are pooled"
    add("folder", type=Path, nargs="+", metavar="RUN", help=several)
    add("--reason", default="", metavar="TEXT", help="why; a loss is refused without one")
    by = "who accepts it (default: who git says that you are)"
    add("--by", default="", metavar="NAME", help=by)
    add(
        "--scenario",
        action="append",
        default=[],
        metavar="ID",
        help="of this scenario alone; may be given again",
    )
    into = verb.add_mutually_exclusive_group()
    named = "the new branch (default: perfgate/baseline-… by scenario and commit)"
    into.add_argument("--branch", metavar="NAME", help=named)
    instead = "no branch: a patch for `git am`"
    into.add_argument("--patch", type=Path, metavar="FILE", help=instead)
    add("--body", type=Path, metavar="FILE", help="text for a pull request, in Markdown")
    clone = "a clone of the engine: compare with the nearest ancestor"
    add("--engine-repo", type=Path, metavar="DIR", help=clone)
    add("--anew", action="store_true", help="without what was recorded before of the build")
    add_import(verb)
    add_format(verb)
    verb.set_defaults(execute=_propose)


@dataclass(frozen=True)
class _Asked:
    """What the command line asks for, and what all scenarios share."""

    by: str
    reason: str
    runs: tuple[str, ...]
    scenarios: Mapping[str, Scenario]
    engine_repo: EngineRepo | None


def _propose(arguments: argparse.Namespace) -> int:
    runs = [read_run(one) for one in arguments.folder]
    suite = {one.id: one for one in load(None).scenarios}
    contents = {name: _contents(one) for name, one in suite.items()}
    require_proposable(runs, contents, arguments.scenario)
    found, left_out = candidates_of(arguments.folder)
    candidates = _chosen(found, arguments.scenario, left_out)
    repo = gate_repo(baselines_folder())
    branch = "" if arguments.patch else arguments.branch or _branch(candidates)
    if branch:
        repo.require_free(branch)
    asked = _Asked(
        _by(arguments.by, repo),
        redact(visible(arguments.reason)).strip(),
        tuple(one.id for one in runs),
        suite,
        EngineRepo(arguments.engine_repo) if arguments.engine_repo else None,
    )
    with TemporaryDirectory(prefix="perfgate-propose-") as scratch:
        proposals, last = _committed(
            repo, candidates, asked, runs, Path(scratch).resolve(), anew=arguments.anew
        )
        patch = repo.patch(last) if arguments.patch else ""
    told_out = sorted(one for one in left_out if not arguments.scenario)
    if arguments.body:
        write_text(arguments.body, body(proposals, told_out))
    # Last, and each whole or not at all.
    if arguments.patch:
        write_text(arguments.patch, patch)
    else:
        repo.make_branch(branch, last)
    _print(arguments, proposals, told_out, branch, last)
    return 0


def _contents(scenario: Scenario) -> Mapping[str, str]:
    return {one.label: one.content_hash() for one in all_probes(scenario)}


def _bands(scenario: Scenario) -> Bands:
    return {
        probe.label: {
            metric: band
            for metric in probe.gating_metrics()
            if (band := band_of(metric, scenario)) is not None
        }
        for probe in all_probes(scenario)
    }


def _chosen(
    found: Sequence[Baseline], chosen: Sequence[str], left_out: set[str]
) -> Sequence[Baseline]:
    """The candidates of the scenarios that were asked for.

    Raises:
        InputError: one of these has none.
    """
    missing = sorted({*chosen} - {one.scenario for one in found})
    if missing:
        why = sorted(one for one in left_out if one.startswith(tuple(missing)))
        raise InputError(
            "the runs give no candidate of this scenario",
            field="--scenario",
            found="; ".join(why) or ", ".join(missing),
            expected=f"one of {', '.join(sorted(one.scenario for one in found))}",
        )
    return [one for one in found if not chosen or one.scenario in chosen]


def _branch(candidates: Sequence[Baseline]) -> str:
    commit = candidates[0].engine.commit[:12]
    if len(candidates) > 1:
        return f"perfgate/baselines-{commit}"
    return f"perfgate/baseline-{candidates[0].scenario}-{commit}"


def _by(named: str, repo: GateRepo) -> str:
    by = visible(named).strip() or repo.who()
    if not by:
        raise InputError(
            "nobody is named who accepts these numbers",
            field="--by",
            expected="a name",
            hint="--by NAME, or git config user.name and user.email",
        )
    return by


def _committed(
    repo: GateRepo,
    candidates: Sequence[Baseline],
    asked: _Asked,
    runs: Sequence[EndedRun],
    scratch: Path,
    *,
    anew: bool,
) -> tuple[list[Proposal], str]:
    """A commit for each scenario, one after the other; the hash of the last.

    Raises:
        InputError: a candidate is refused, or git fails; nothing refers to what was made then.
    """
    gathered = _gathered(candidates, runs, scratch, anew=anew)
    store = Store(repo.export(scratch))
    noise = keep_noise([one.folder for one in runs], store=store.folder)
    for file in noise:
        _take_as_kept(file, repo.root / file.relative_to(scratch / "tree"))
    proposals, last = [], repo.commit
    for file in gathered:
        made, written = _proposal(store, file, asked)
        if made is None:
            continue
        files = [written, *question_files(read(written), store.folder), *noise]
        tree = scratch / "tree"
        last = repo.committed(last, files, tree, message(made), scratch)
        proposals.append(made)
        noise = []
    if not proposals:
        raise InputError(
            "the baseline is there already, and these runs change nothing in it",
            file=runs[0].folder,
            found=", ".join(one.scenario for one in candidates),
            expected="runs that are not part of it yet",
        )
    return proposals, last


def _take_as_kept(file: Path, kept: Path) -> None:
    """Have the noise history's file of a run as the session itself wrote it, if it did.

    Else two files of one run, with other times in them, would be in conflict.
    """
    if kept.is_file() and not kept.is_symlink():
        was, now = read_noise(kept), read_noise(file)
        if replace(was, at=now.at, file=now.file) == now:
            write_text(file, kept.read_text(encoding="utf-8"))


def _gathered(
    candidates: Sequence[Baseline], runs: Sequence[EndedRun], scratch: Path, *, anew: bool
) -> Sequence[Path]:
    """The candidates' files, each with the sessions that were recorded of the same before.

    The store of this machine has them, or the runs' own folders where another machine measured.
    """
    store = Store(scratch / "candidates")
    store.folder.mkdir()
    stores = [] if anew else [candidate_store(), *(Store(run.folder / CANDIDATES) for run in runs)]
    for known, candidate in product(stores, candidates):
        path = known.path(candidate.hardware, candidate.scenario, candidate.engine.commit)
        if path.is_file():
            keep(store, [read(path)], anew=False)
    paths, _ = keep(store, candidates, anew=anew)
    return paths


def _proposal(store: Store, file: Path, asked: _Asked) -> tuple[Proposal | None, Path]:
    """Accept a candidate into `store`, and what that means; None: it changes nothing."""
    found = read(file)
    path = store.path(found.hardware, found.scenario, found.engine.commit)
    if is_unchanged(read(path) if path.is_file() else None, found):
        return None, path
    bands = _bands(asked.scenarios[found.scenario])
    before = store.choose(found.hardware, found.scenario, found.engine, asked.engine_repo)
    anchor = store.anchor(found.hardware, found.scenario, found.engine)
    held: list[Held] = []
    if before is not None:
        held.append(held_against(found, before, "baseline", bands))
    if anchor is not None and (before is None or anchor.baseline.engine != before.baseline.engine):
        held.append(held_against(found, anchor, "anchor", bands))
    proved = losses_of(found, before)
    losses = (*proved, *losses_in(held))
    if losses and not asked.reason:
        raise InputError(
            "the candidate has lost, and no reason is given why that is right",
            field="--reason",
            found=f"{found.scenario}: {'; '.join(losses)}",
            expected="a loss is accepted by a person, with a reason",
            hint="fix the build, or use --reason 'why this loss is right'",
        )
    done = promote(
        file,
        by=asked.by,
        reason=asked.reason or found.reason,
        accept_regression=asked.reason if proved else None,
        repo=asked.engine_repo,
        store=store,
    )
    accepted = read(done.file)
    told = {label: entry.fingerprint.get("content", "-") for label, entry in found.entries.items()}
    return (
        Proposal(
            replace(accepted, entries=found.entries),
            done.change,
            tuple(held),
            noise_of(found, bands),
            losses,
            asked.runs,
            told,
            done.notes,
        ),
        done.file,
    )


def _print(
    arguments: argparse.Namespace,
    proposals: Sequence[Proposal],
    left_out: Sequence[str],
    branch: str,
    last: str,
) -> None:
    where = {"patch": str(arguments.patch)} if arguments.patch else {"branch": branch}
    if arguments.format == "json":
        told = [
            {
                "scenario": one.baseline.scenario,
                "hardware": one.baseline.hardware,
                "commit": one.baseline.engine.commit,
                "change": one.change,
                "subject": subject(one),
                "losses": list(one.losses),
            }
            for one in proposals
        ]
        print_json({**where, "commit": last, "proposals": told, "left_out": list(left_out)})
        return
    for one in proposals:
        print(message(one))
    for scenario in left_out:
        print(f"left out: {scenario}")
    for name, text in where.items():
        print(f"{name}: {text}")
    if branch:
        print(f"push it and open a request, or look at it: git log -p HEAD..{branch}")
