"""`perfgate baseline promote`: accept a candidate, or put the baselines of runs up for review.

With ``--branch`` or ``--patch`` the suite's store stays as it is: each scenario of the runs becomes
a commit with its evidence, and merging it accepts the baseline.

Exit status: 0 done; 2 refused or wrong usage, and then nothing was made.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from perfgate.baselines import Baseline, Store, candidate_store, read
from perfgate.baselines.candidates import gather
from perfgate.baselines.engine_repo import EngineRepo
from perfgate.baselines.file import question_files
from perfgate.baselines.gate_repo import GateRepo
from perfgate.baselines.noise_history import keep_noise
from perfgate.baselines.proposable_runs import require_proposable
from perfgate.baselines.recording import candidates_of
from perfgate.cli.baseline.diff import plain_promotion, print_promotion
from perfgate.cli.output import add_format, answer, print_json, refuse_given
from perfgate.cli.scenario_choice import add_import, load
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_text
from perfgate.core.files.paths import baselines_folder
from perfgate.core.redaction import redact, visible
from perfgate.judging.acceptance import Promotion, Proposal, promote, propose
from perfgate.reports.proposal_text import body, message, subject
from perfgate.runs.ended_run import read_run
from perfgate.runs.run_folder import CANDIDATES
from perfgate.scenarios.scenario import Scenario

_OF_FILES = {"--accept-regression": None, "--dry-run": False, "--rehearsal": False}
_OF_RUNS: Mapping[str, object] = {"--fresh": False, "--body": None, "--scenario": []}


def add_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of `promote`."""
    add = verb.add_argument
    sources = "candidate; with --branch or --patch: runs of one engine commit"
    add("source", type=Path, nargs="+", metavar="FILE", help=sources)
    by = "who accepts it (default with --branch or --patch: git's user)"
    add("--by", default="", metavar="NAME", help=by)
    why = "why the numbers are right; --branch, --patch: only for a loss"
    add("--reason", default="", metavar="WHY", help=why)
    clone = "engine's clone: compare with the nearest ancestor"
    add("--engine-repo", type=Path, metavar="DIR", help=clone)
    add_format(verb)
    of_file = verb.add_argument_group("of a candidate's file")
    loss = "why a proved loss is accepted"
    of_file.add_argument("--accept-regression", metavar="REASON", help=loss)
    dry = "show changes, write nothing"
    of_file.add_argument("--dry-run", action="store_true", help=dry)
    rehearsed = "accept results of mocks, for rehearsals"
    of_file.add_argument("--rehearsal", action="store_true", help=rehearsed)
    of_runs = verb.add_argument_group("of runs, for review")
    into = of_runs.add_mutually_exclusive_group()
    into.add_argument("--branch", metavar="NAME", help="create this branch of the gate repository")
    patch = "write a patch for `git am` instead"
    into.add_argument("--patch", type=Path, metavar="FILE", help=patch)
    described = "write the pull request's text, in Markdown"
    of_runs.add_argument("--body", type=Path, metavar="FILE", help=described)
    only = "only this scenario; repeatable"
    of_runs.add_argument("--scenario", action="append", default=[], metavar="ID", help=only)
    fresh = "discard earlier sessions of the build"
    of_runs.add_argument("--fresh", action="store_true", help=fresh)
    add_import(verb)
    verb.set_defaults(execute=_promote)


def _promote(arguments: argparse.Namespace) -> int:
    for_review = bool(arguments.branch or arguments.patch)
    form = "with --branch or --patch" if for_review else "without --branch and --patch"
    refuse_given(arguments, _OF_FILES if for_review else _OF_RUNS, f"has no meaning {form}")
    repo = EngineRepo(arguments.engine_repo) if arguments.engine_repo else None
    return _for_review(arguments, repo) if for_review else _at_once(arguments, repo)


def _at_once(arguments: argparse.Namespace, repo: EngineRepo | None) -> int:
    """Accept one candidate into the suite's store."""
    file, *more = arguments.source
    if more:
        raise InputError("more than one candidate", found=str(more[0]), expected="one file")

    def promoted(*, dry_run: bool) -> Promotion:
        return promote(
            file,
            by=arguments.by,
            reason=arguments.reason,
            accept_regression=arguments.accept_regression,
            dry_run=dry_run,
            repo=repo,
            rehearsal=arguments.rehearsal,
        )

    # What would change is on the screen before anything is written.
    proposed = promoted(dry_run=True)
    if arguments.format == "json":
        print_json(plain_promotion(proposed if arguments.dry_run else promoted(dry_run=False)))
        return 0
    print_promotion(proposed)
    if arguments.dry_run:
        print(f"would write: {proposed.file}")
        return 0
    written = promoted(dry_run=False).file
    beside = question_files(read(written), written.parents[2])
    for path in beside:
        print(f"questions: {path}")
    print(f"baseline: {written}")
    if not arguments.rehearsal:
        these = "these files so that they are" if beside else "this file so that it is"
        print(f"commit {these} used elsewhere too")
    return 0


def _for_review(arguments: argparse.Namespace, engine_repo: EngineRepo | None) -> int:
    """Make a branch or a patch of what runs measured."""
    runs = [read_run(folder) for folder in arguments.source]
    suite = {scenario.id: scenario for scenario in load(None).scenarios}
    require_proposable(runs, suite, arguments.scenario)
    found, reasons = candidates_of(arguments.source)
    left_out = sorted(reasons)
    candidates = _chosen(found, arguments.scenario, left_out)
    known = [candidate_store(), *(Store(run.folder / CANDIDATES) for run in runs)]
    with TemporaryDirectory(prefix="perfgate-promote-") as folder:
        scratch = Path(folder).resolve()
        repo = GateRepo(baselines_folder(), scratch)
        paths = gather(scratch / "candidates", candidates, [] if arguments.fresh else known)
        noise = keep_noise([run.folder for run in runs], store=repo.baselines)
        proposals = _committed(repo, paths, noise, suite, arguments, engine_repo)
        if arguments.body:
            write_text(arguments.body, body(proposals, left_out))
        # Last, and each whole or not at all.
        if arguments.patch:
            write_text(arguments.patch, repo.patch())
        else:
            repo.make_branch(arguments.branch)
    place = {"patch": str(arguments.patch)} if arguments.patch else {"branch": arguments.branch}
    rows = [_plain(proposal, repo) for proposal in proposals]
    advice = f"to look at it: git log -p HEAD..{arguments.branch}; push it for review"
    return answer(
        arguments,
        {**place, "commit": repo.last, "proposals": rows, "left_out": left_out},
        *map(message, proposals),
        *(f"left out: {reason}" for reason in left_out),
        *(f"{name}: {text}" for name, text in place.items()),
        *([advice] if arguments.branch else []),
    )


def _chosen(
    found: Sequence[Baseline], chosen: Sequence[str], left_out: Sequence[str]
) -> Sequence[Baseline]:
    """The candidates of the chosen scenarios.

    Raises:
        InputError: one of these has none.
    """
    names = {one.scenario for one in found}
    for scenario in chosen:
        if scenario not in names:
            reasons = [reason for reason in left_out if reason.startswith(scenario)]
            raise InputError(
                "the runs give no candidate of this scenario",
                field="--scenario",
                found="; ".join(reasons) or scenario,
                expected=f"one of {', '.join(sorted(names))}",
            )
    return [one for one in found if not chosen or one.scenario in chosen]


def _committed(
    repo: GateRepo,
    candidates: Sequence[Path],
    noise: Sequence[Path],
    suite: Mapping[str, Scenario],
    arguments: argparse.Namespace,
    engine_repo: EngineRepo | None,
) -> list[Proposal]:
    """Commit each candidate with its evidence, one after the other.

    Raises:
        InputError: one is refused, none changes anything, or git fails.
    """
    user, store, proposals = repo.user, Store(repo.baselines), []
    by, reason = (visible(text).strip() for text in (arguments.by, redact(arguments.reason)))
    files = [*noise]
    for file in candidates:
        scenario = suite[read(file).scenario]
        made = propose(file, store, scenario, by=by or user, reason=reason, repo=engine_repo)
        if made is not None:
            written = made.promotion.file
            files += [written, *question_files(read(written), store.folder)]
            repo.commit(files, message(made))
            proposals.append(made)
            files = []
    if not proposals:
        raise InputError(
            "the baseline is there already, and these runs change nothing in it",
            file=arguments.source[0],
            found=", ".join(file.parent.name for file in candidates),
            expected="runs that are not part of it yet",
        )
    return proposals


def _plain(proposal: Proposal, repo: GateRepo) -> dict[str, object]:
    return {
        "subject": subject(proposal),
        "losses": list(proposal.losses),
        **plain_promotion(proposal.promotion),
        "baseline": proposal.promotion.file.relative_to(repo.baselines).as_posix(),
    }
