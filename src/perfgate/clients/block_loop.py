"""Put short blocks of load on two servers in turns, A B B A …, and write down what each gave.

A program of its own: it knows nothing of scenarios, and its time is not perfgate's. A block is one
request on each of the streams at once, non-streaming; its tokens are those that the server counts.
A pair of blocks, one a server, has the same prompts; a pair in which other programs used more of
the machine than allowed is thrown away and made again.
"""

import argparse
import http.client
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from perfgate.core.cpu_times import core_times

SCHEMA_VERSION = 1
_ANSWER_WITHIN_S = 300.0
_LARGEST_ANSWER = 2**20  # bytes
_WORDS = "stone river table green window seven music paper light garden train north apple cloud"


class Server(NamedTuple):
    """One of the two: its side's name, where it answers, and its process."""

    side: str
    host: str
    port: int
    process: psutil.Process

    @classmethod
    def named(cls, text: str) -> "Server":
        """From ``side=host:port=pid``."""
        side, place, pid = text.split("=")
        host, _, port = place.rpartition(":")
        return cls(side, host, int(port), psutil.Process(int(pid)))

    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line, as `blocks.command` writes it.

    A prompt has ``isl`` words, an answer ``osl`` tokens; of at most ``most`` pairs of blocks,
    ``pairs`` are to be kept, in which others used no larger share of the machine than ``others``.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", action="append", required=True, help="side=host:port=pid")
    parser.add_argument("--model", required=True)
    for name in ("concurrency", "isl", "osl", "seed", "pairs", "most"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--others", type=float, required=True)
    return parser.parse_args(argv)


def answered_tokens(server: Server, arguments: argparse.Namespace, prompt: str) -> int:
    """The tokens that one request was answered with.

    Raises:
        ValueError: the answer is broken, short or an error.
        OSError, http.client.HTTPException: there is none.
    """
    asked = {"model": arguments.model, "prompt": prompt, "max_tokens": arguments.osl}
    body = json.dumps({**asked, "temperature": 0, "ignore_eos": True})
    connection = http.client.HTTPConnection(server.host, server.port, timeout=_ANSWER_WITHIN_S)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/completions", body, headers)
        answer = connection.getresponse()
        said = answer.read(_LARGEST_ANSWER)
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise ValueError(f"status {answer.status}: {said[:200].decode(errors='replace')}")
    try:
        tokens = json.loads(said)["usage"]["completion_tokens"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"no count of tokens in {said[:200].decode(errors='replace')}") from None
    if tokens != arguments.osl:
        raise ValueError(f"{tokens} tokens, not the {arguments.osl} asked for")
    return int(tokens)


def prompts_of(number: int, arguments: argparse.Namespace) -> list[str]:
    """The prompts of the pair of that number, one a stream."""
    seeded = random.Random(f"{arguments.seed} {number}")  # noqa: S311 - words, no secrets
    words = _WORDS.split()
    return [
        " ".join(seeded.choice(words) for _ in range(arguments.isl))
        for _ in range(arguments.concurrency)
    ]


def block(server: Server, prompts: list[str], arguments: argparse.Namespace) -> dict[str, float]:
    """One block: its seconds, tokens and the server's CPU seconds."""
    try:
        with ThreadPoolExecutor(len(prompts)) as streams:
            cpu_s, began = server.cpu_s(), time.perf_counter()
            counts = list(streams.map(lambda one: answered_tokens(server, arguments, one), prompts))
            seconds = time.perf_counter() - began
        return {"seconds": seconds, "tokens": sum(counts), "cpu_s": server.cpu_s() - cpu_s}
    except (ValueError, OSError, http.client.HTTPException, psutil.Error) as error:
        why = str(error) or type(error).__name__
        raise SystemExit(f"a request to the server of {server.side} failed: {why}") from None


def others_cpu_s(servers: list[Server], cores: set[int]) -> float:
    """CPU seconds that other programs, and other machines on its host, have used of the cores."""
    times = [core for number, core in core_times().items() if number in cores]
    used = sum(core.work_s + core.steal_s for core in times)
    return used - time.process_time() - sum(one.cpu_s() for one in servers)


def pair(number: int, servers: list[Server], arguments: argparse.Namespace) -> dict[str, Any]:
    """One pair of blocks, the servers in the order of its number, and who else used the machine."""
    prompts = prompts_of(number, arguments)
    cores = os.sched_getaffinity(0)  # which the servers may use, too
    before, began = others_cpu_s(servers, cores), time.perf_counter()
    blocks = {}
    for server in servers if number % 2 == 0 else reversed(servers):
        blocks[server.side] = block(server, prompts, arguments)
    seconds = time.perf_counter() - began
    others = max(0.0, others_cpu_s(servers, cores) - before) / seconds / len(cores)
    return {"blocks": blocks, "others": others, "kept": others <= arguments.others}


def main() -> int:
    arguments = parse_arguments()
    servers = [Server.named(one) for one in arguments.server]
    for server in servers:  # warmed up by a request
        block(server, prompts_of(-1, arguments)[:1], arguments)
    pairs: list[dict[str, Any]] = []
    while len(pairs) < arguments.most:
        pairs.append(pair(len(pairs), servers, arguments))
        kept = sum(one["kept"] for one in pairs)
        print(f"pair {len(pairs)}: others used {pairs[-1]['others']:.0%}, {kept} kept", flush=True)
        if kept == arguments.pairs:
            break
    found = {"schema_version": SCHEMA_VERSION, "asked": vars(arguments), "pairs": pairs}
    for server in servers:
        file = Path(f"blocks_{server.side}.json")
        file.write_text(json.dumps({"side": server.side, **found}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
