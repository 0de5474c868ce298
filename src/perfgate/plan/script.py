"""Script: the steps of a scenario as one shell script that a person can paste or run.

It carries the same calls as `perfgate scenarios command --format json` and as a run of the suite.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.clients.datasets import GPQA_DIAMOND, GPQA_FOLDER, ON_PAPER, SHAREGPT
from perfgate.core.programs.command import Command, Step
from perfgate.core.programs.locations import TENSORRT_LLM_SOURCE
from perfgate.engines.base import EngineBuild
from perfgate.plan.calls import RESULTS
from perfgate.plan.shell_text import call, comment, exports, quoted
from perfgate.scenarios.scenario import Scenario

SERVER_LOG = "server.log"
_POLL_S = 1
_GRACE_S = 60  # for a server to end by itself: it has to stop its ranks
_PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")
_BROUGHT = (str(ON_PAPER), SHAREGPT, GPQA_DIAMOND, GPQA_FOLDER)  # what a person has to have
# In a checkout of TensorRT-LLM.
_SOURCE = re.compile(r"(?:benchmarks|examples)/[A-Za-z0-9_./-]+\.py")
# The whole script is in parentheses: pasted into a terminal it neither ends nor changes the shell.
_HEAD = """\
(
set -eu -o pipefail
"""
_WORK = """\
here=$PWD
work=$(mktemp -d "$PWD"/{folder})
cd "$work"
echo "working in $work"
"""
_TAIL = """\

echo "the results are in $work"
)
"""
_SERVER = """\
if curl -s -o /dev/null --noproxy '*' --max-time 5 {url}; then
  echo "something already answers at" {url} >&2
  exit 1
fi
# A process group of its own, so that all of the server can be stopped.
set -m
{call} < /dev/null > {log} 2>&1 &
server=$!
set +m
stop_server() {{
  if [ -z "$server" ]; then return 0; fi
{leave}  kill -- "-$server" 2> /dev/null || true
  for _ in $(seq {grace}); do
    kill -0 "$server" 2> /dev/null || break
    sleep 1
  done
  kill -KILL -- "-$server" 2> /dev/null || true
  wait "$server" 2> /dev/null || true
  server=
}}
trap stop_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
deadline=$((SECONDS + {start}))
until curl -fs -o /dev/null --noproxy '*' --max-time {answer} {url}; do
  if ! kill -0 "$server" 2> /dev/null; then
    echo "the server ended before it was ready; the end of $work/{log}:" >&2
    tail -n 20 {log} >&2
    exit 1
  fi
  if [ "$SECONDS" -ge "$deadline" ]; then
    echo "the server was not ready after {start} s; see $work/{log}" >&2
    exit 1
  fi
  sleep {poll}
done
"""


@dataclass(frozen=True)
class Readiness:
    """How a script knows that its server is ready: the address, and the seconds it may take.

    `answer_s` is what one answer may take.
    """

    url: str
    start_s: float
    answer_s: float = 5.0


def script(
    scenario: Scenario,
    build: EngineBuild,
    steps: Sequence[Step],
    ready: Readiness,
    notes: Sequence[str] = (),
) -> str:
    """The steps as a bash script.

    It works in a new folder below the one it is called in. A variable is set for its step alone;
    one whose value is not known to be harmless is asked for, not written down. The server runs in
    the background until the last step that needs it is done, and is stopped on every way out.

    Every line of it is fixed, a comment or quoted: no text of a scenario is read as a command.

    Args:
        scenario: whose steps they are.
        build: the release that they are spelled for.
        steps: from `perfgate.plan.calls`.
        ready: how the server is known to be ready.
        notes: what whoever runs it should know.
    """
    parts = [*_title(scenario, build, steps), *(comment(note) + "\n" for note in notes)]
    parts += [_HEAD, *_needed(steps)]
    parts.append(_WORK.format(folder=shlex.quote(f"perfgate-{scenario.id}.XXXXXX")))
    serving = False
    for step in steps:
        parts.append("\n" + comment(step.role + _of_probe(step)) + "\n")
        if step.role == "server":
            parts.append(_serve(step.command, ready))
            serving = True
            continue
        if serving and step.role == "benchmark":
            parts.append("stop_server\n")
            serving = False
        parts.append(_run(step, _shared(steps, step)))
    return "".join([*parts, _TAIL])


def _title(scenario: Scenario, build: EngineBuild, steps: Sequence[Step]) -> Iterator[str]:
    source = scenario.source
    yield "#!/usr/bin/env bash\n"
    spelled = f"spelled for {build.name} {build.version}"
    yield comment(f"{scenario.id}: {scenario.title}") + "\n"
    yield comment(f'{source.document}, "{source.section}", {spelled}') + "\n"
    missing = sorted({found for step in steps for found in _placeholders(step.command)})
    if missing:
        yield f"# Replace these first: {' '.join(missing)}\n"


def _placeholders(command: Command) -> Iterable[str]:
    for text in (*command.argv, *command.files.values()):
        yield from _PLACEHOLDER.findall(text)


def _needed(steps: Sequence[Step]) -> Iterator[str]:
    """What must be there before anything is started."""
    words = {word for step in steps for word in step.command.argv}
    for name in _BROUGHT:
        if name in words:
            yield f"if [ ! -e {name} ]; then echo 'put {name} into this folder' >&2; exit 1; fi\n"
    if any(_SOURCE.fullmatch(word) for word in words):
        yield f': "${{{TENSORRT_LLM_SOURCE}:?set it to a checkout of TensorRT-LLM}}"\n'


def _of_probe(step: Step) -> str:
    return "" if step.probe is None else f" of {step.probe}"


def _shared(steps: Sequence[Step], step: Step) -> list[str]:
    """Files that a step of a probe may need and a step of all probes makes."""
    if step.probe is None:
        return []
    return [one.produces for one in steps if one.produces is not None and one.probe is None]


def _serve(command: Command, ready: Readiness) -> str:
    leave = ""
    if Path(command.argv[0]).name == "docker":
        name = shlex.quote(command.argv[command.argv.index("--name") + 1])
        leave = f"  docker stop {name} > /dev/null 2>&1 || true\n"
    return _files(command) + _SERVER.format(
        url=shlex.quote(ready.url),
        call="(\n" + _exports(command) + f"  exec {_call(command)}\n)",
        log=SERVER_LOG,
        leave=leave,
        grace=_GRACE_S,
        start=int(ready.start_s),
        answer=int(ready.answer_s),
        poll=_POLL_S,
    )


def _run(step: Step, shared: Sequence[str]) -> str:
    """A step in the folder of its probe; one of all probes in the one above."""
    command, before = step.command, ""
    if step.probe is not None:
        folder = shlex.quote(str(RESULTS / step.probe))
        before = f"  mkdir -p {folder}\n  cd {folder}\n"
        for name in map(shlex.quote, shared):
            before += f"  ln -f ../../{name} {name}\n"
    for name in _BROUGHT:
        if name in command.argv:
            before += f'  cp -R "$here"/{name} .\n'
    return "(\n" + before + _files(command) + _exports(command) + f"  {_logged(step)}\n)\n"


def _logged(step: Step) -> str:
    """The call; what a measuring program prints is shown, and kept."""
    line = _call(step.command)
    if step.command.stdout is not None:
        return f"{line} > {shlex.quote(step.command.stdout)}"
    if step.role == "prepare_dataset" or step.command.argv[0] == "curl":
        return line
    return f"{line} 2>&1 | tee {step.role}.log"


def _call(command: Command) -> str:
    """The argv; programs of TensorRT-LLM's sources where the person has them."""
    return call(command.argv, written=_of_source)


def _of_source(word: str) -> str:
    return f'"${TENSORRT_LLM_SOURCE}"/{word}' if _SOURCE.fullmatch(word) else quoted(word)


def _exports(command: Command) -> str:
    return "".join(f"  {line}\n" for line in exports(command.env))


def _files(command: Command) -> str:
    return "".join(_file(name, content) for name, content in command.files.items())


def _file(name: str, content: str) -> str:
    """A file as a here-document; by printf what a here-document would change.

    That is a last line without an end, and exclamation marks: a terminal takes them, outside
    of quotes, for its history.
    """
    end = "EOF"
    while end in content.split("\n"):
        end += "F"
    if not content.endswith("\n") or "!" in content:
        return f"printf %s {shlex.quote(content)} > {shlex.quote(name)}\n"
    return f"cat > {shlex.quote(name)} <<'{end}'\n{content}{end}\n"
