"""Blocks of load in turns on two servers: how they are made, and what they gave.

Both builds are up, and `perfgate.clients.block_loop` puts blocks of one request a stream on them,
A B B A …; what others used of the machine while it did so says which pairs count. Each side's
throughput is the geometric mean of its blocks, so that the ratio of both is the mean over pairs.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean, geometric_mean, stdev
from typing import Annotated

from msgspec import Meta

from perfgate.clients.base import Target
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import read_json
from perfgate.core.measurement import Measurement
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.programs.command import Command
from perfgate.core.verdict import counted, percent
from perfgate.scenarios.scenario import GatePolicy, LoadPoint, Workload

# Words of a prompt and tokens of an answer, at most: short blocks meet fewer neighbours.
_WORDS = 16
_TOKENS = 16
# Pairs that are made, at most, for each that is wanted; and the share of these that is enough.
_MOST = 2
_ENOUGH = 0.5
FACT = "blocks"
_LOOP = Path(__file__).with_name("block_loop.py")


@dataclass(frozen=True)
class Block:
    """One block: how long it took, tokens that the server counted, and the server's CPU seconds."""

    seconds: Annotated[float, Meta(gt=0)]
    tokens: Annotated[int, Meta(gt=0)]
    cpu_s: Annotated[float, Meta(ge=0)]


@dataclass(frozen=True)
class BlockPair:
    """A block of each side, the share of the machine that others used, and whether it counts."""

    blocks: Mapping[str, Block]
    others: float
    kept: bool


@dataclass(frozen=True)
class BlockFacts:
    """What a record says of the blocks of one start: the fact `FACT`.

    Attributes:
        pairs: those that count.
        thrown_away: those that others disturbed.
        others_used: the most that others used of the machine in one of these, as a share.
        noise_of_pair: standard deviation of a pair's log ratio of throughputs, within the start.
    """

    pairs: int
    thrown_away: int = 0
    others_used: float = 0.0
    noise_of_pair: float = 0.0


@dataclass(frozen=True)
class _Report:
    side: str
    pairs: tuple[BlockPair, ...]


def file_of(side: str) -> str:
    """The file that the loop leaves for a side."""
    return f"blocks_{side}.json"


def side_of(folder: Path) -> str | None:
    """The side whose blocks a folder holds; None: none."""
    found = sorted(folder.glob(file_of("*")))
    return found[0].stem.removeprefix("blocks_") if found else None


def pairs_wanted(gate: GatePolicy, point: LoadPoint) -> int:
    """Pairs of blocks that are to count at a point.

    A block of several streams has as many requests, and takes as much longer: fewer of them are
    worth as much. Two at least, one in either order.
    """
    return max(min(gate.blocks, 2), gate.blocks // point.concurrency)


def command(
    targets: Mapping[str, tuple[Target, int]], load: Workload, point: LoadPoint, gate: GatePolicy
) -> Command:
    """The call that makes the blocks.

    Args:
        targets: side → where its server is, and the process on this machine that holds it.
        load: whose requests they are.
        point: of its sweep.
        gate: how many pairs of blocks are to count, and what others may use of the machine while
            one is made.
    """
    (first, _), *_ = targets.values()
    pairs = pairs_wanted(gate, point)
    argv = [sys.executable, "-P", str(_LOOP), "--model", first.endpoint.model]
    for side, (target, pid) in targets.items():
        argv += ["--server", f"{side}={target.endpoint.host}:{target.endpoint.port}={pid}"]
    numbers = {
        "concurrency": point.concurrency,
        "isl": min(load.isl or _WORDS, _WORDS),
        "osl": min(load.osl or _TOKENS, _TOKENS),
        "seed": point.seed,
        "pairs": pairs,
        "most": _MOST * pairs,
        "others": gate.disturbance.others_cpu,
    }
    return Command((*argv, *chain(*((f"--{name}", str(one)) for name, one in numbers.items()))))


def parse(folder: Path, side: str, pairs: int) -> Measurement:
    """What the blocks of a side gave: the metrics of its kept blocks, and how they spread.

    Args:
        folder: with the side's file.
        side: whose.
        pairs: that were to count; with fewer than half of them it is disturbed.

    Raises:
        InputError: the file is missing or damaged.
    """
    file = folder / file_of(side)
    report = from_plain(_Report, read_json(file, what="blocks of load", is_named=False))
    if report.side != side or any(side not in one.blocks for one in report.pairs):
        raise InputError("blocks of another side", file=file, found=report.side, expected=side)
    if not report.pairs or any(len(one.blocks) != 2 for one in report.pairs):
        raise InputError("no pair of blocks", file=file, expected="a block of each of two sides")
    kept = [one for one in report.pairs if one.kept]
    thrown = [one.others for one in report.pairs if not one.kept]
    ratios = [_log_ratio(one) for one in kept]
    most, noise = max(thrown, default=0.0), stdev(ratios) if len(ratios) > 1 else 0.0
    facts = BlockFacts(len(kept), len(thrown), round(most, 3), round(noise, 5))
    disturbed: tuple[str, ...] = ()
    if len(kept) < max(1, _ENOUGH * pairs):
        used = f"other programs used {100 * fmean(thrown):.0f} % of the machine"
        of = counted(len(report.pairs), "pair")
        disturbed = (f"{len(thrown)} of {of} of blocks were thrown away: {used}",)
    metrics = {}
    if own := [one.blocks[side] for one in kept]:
        speeds = [one.tokens / one.seconds for one in own]
        cpu_s, tokens = sum(one.cpu_s for one in own), sum(one.tokens for one in own)
        metrics = {"output_throughput": geometric_mean(speeds)}
        if cpu_s > 0:
            metrics["server_cpu_s_per_1k_tokens"] = 1000 * cpu_s / tokens
    return Measurement(metrics, {FACT: to_plain(facts)}, disturbed=disturbed)


def notes(measurements: Sequence[Measurement]) -> list[str]:
    """What is to be said of blocks of load in turns: pairs, those thrown away, their noise."""
    found = [one for each in measurements if isinstance(one := each.facts.get(FACT), dict)]
    if not found:
        return []
    facts = [from_plain(BlockFacts, one) for one in found]
    pairs, thrown = sum(one.pairs for one in facts), sum(one.thrown_away for one in facts)
    text = f"load in turns on both builds: {counted(pairs, 'pair')} of blocks"
    if thrown:
        used = 100 * max(one.others_used for one in facts)
        text += f", {thrown} more thrown away as others used up to {used:.0f} % of the machine"
    noise = math.sqrt(fmean(one.noise_of_pair**2 for one in facts))
    return [f"{text}; noise of a pair {percent(noise, sign='')}"]


def _log_ratio(pair: BlockPair) -> float:
    """How much faster one side's block was, always the same side's, as a logarithm."""
    blocks = (pair.blocks[side] for side in sorted(pair.blocks))
    one, other = (math.log(block.tokens / block.seconds) for block in blocks)
    return one - other
