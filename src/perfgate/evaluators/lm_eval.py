"""lm_eval: EleutherAI's harness against an OpenAI-compatible server; its command, and its tasks.

Its results are read by `lm_eval_results`. A repository may bring tasks of its own along.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from perfgate.clients.base import Target, package_version
from perfgate.core.errors import InputError
from perfgate.core.files.paths import packaged, repository, require_own
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import LM_EVAL
from perfgate.evaluators import lm_eval_results
from perfgate.evaluators.base import Evaluator, evaluator
from perfgate.scenarios.scenario import AccuracyTask
from perfgate.scenarios.yaml_document import LARGEST_FILE, compose

# Attempts at one request. For lm_eval's tasks as the DeepSeek-R1 recipe has it, section "Running
# Evaluations to Verify Accuracy": thousands of prompts wait in the server's queue at once. For our
# own small ones few, so that a dead server is told in seconds, not minutes.
MAX_RETRIES = 20
OWN_MAX_RETRIES = 2
# `metric_list` and `filter_list` of `lm_eval/tasks/gsm8k/gsm8k.yaml`, lm_eval 0.4.
_GSM8K = frozenset({"exact_match:strict-match", "exact_match:flexible-extract"})

_MOST_NAMES = 100  # of metrics or filters that one task has


@evaluator("lm_eval")
class LmEval(Evaluator):
    """Generative tasks of lm_eval through the server's completions endpoint.

    Tasks that score given answers by their log-likelihood need lm_eval's own tokenizer and are
    not set up here.
    """

    @classmethod
    def scores(cls) -> Mapping[str, frozenset[str]]:
        """See `MeasuringProgram.scores`."""
        found = {"gsm8k": _GSM8K}
        for folder in reversed(_folders()):
            for file in folder.glob("*/*.yaml"):
                if file.stem == file.parent.name:
                    found.pop(file.stem, None)
                    if scores := _scores(file):
                        found[file.stem] = scores
        return found

    # The log's tail is seldom the cause.
    diagnose = staticmethod(lm_eval_results.diagnose)
    parse = staticmethod(lm_eval_results.parse)

    def version(self, locations: Locations) -> str:
        """See `Evaluator.version`; lm_eval does not tell it, so its Python is asked."""
        return package_version(LM_EVAL, "lm_eval", locations)

    def command(self, target: Target, task: AccuracyTask) -> Command:
        """See `Evaluator.command`.

        Raises:
            InputError: an extra field of the requests that lm_eval's command line cannot carry.
        """
        tasks = folder_of(task.task)
        own = tasks is not None
        results = target.folder if target.locations.on_paper else target.folder.resolve()
        # lm_eval puts what it does not know among these into the body of every request.
        body: dict[str, object] = {"temperature": task.temperature}
        if task.add_special_tokens is not None:
            body["add_special_tokens"] = task.add_special_tokens
        body |= task.extra_body
        argv = [*target.locations.find(LM_EVAL), "--model", "local-completions"]
        argv += ["--tasks", task.task, "--batch_size", str(task.batch_size)]
        argv += ["--gen_kwargs", _pairs(body), "--num_fewshot", str(task.fewshot)]
        argv += ["--model_args", _pairs(_model(target, task, own=own))]
        if tasks is not None:
            argv += ["--include_path", str(tasks), "--seed", "0"]
        if task.limit is not None:
            argv += ["--limit", str(task.limit)]
        argv += ["--log_samples", "--output_path", str(results)]
        env = {"DO_NOT_TRACK": "1", "TOKENIZERS_PARALLELISM": "false"}
        if own:
            # The data is in the repository: no network, and no cache that runs could share.
            env |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(results / "huggingface")}
        return Command(tuple(argv), env)


def _model(target: Target, task: AccuracyTask, *, own: bool) -> dict[str, object]:
    model: dict[str, object] = {
        "model": target.endpoint.model,
        "base_url": f"{target.endpoint.url}/v1/completions",
        "num_concurrent": task.concurrency,
        "max_retries": OWN_MAX_RETRIES if own else MAX_RETRIES,
        # Prompts travel as text: tokenizing is part of what is tested.
        "tokenized_requests": False,
    }
    if own:
        # Our tasks need no tokenizer in lm_eval; theirs take its end-of-text as a stop, too.
        model["tokenizer_backend"] = None
    elif target.tokenizer != target.endpoint.model:
        model["tokenizer"] = target.tokenizer
    return model


def _pairs(fields: dict[str, object]) -> str:
    """``key=value,…`` as lm_eval's command line reads it back.

    Raises:
        InputError: a value with a comma or quote, which it would read as something else.
    """
    for name, value in fields.items():
        if isinstance(value, str) and set(value) & set(",'\"{}[]()"):
            problem = "lm_eval cannot be given this value"
            expected = "text without commas, quotes and brackets"
            raise InputError(problem, field=name, found=repr(value), expected=expected)
    return ",".join(f"{name}={value}" for name, value in fields.items())


def folder_of(task: str) -> Path | None:
    """The folder of tasks that has this one, with its data; None: it is lm_eval's own.

    That of the gate repository comes first, then the one that perfgate brings along.

    Raises:
        InputError: it could be another user's: a task may be a program.
    """
    return next((folder for folder in _folders() if require_own(folder / task).is_dir()), None)


def _folders() -> tuple[Path, ...]:
    own, brought = (root / "fixtures" / "lm_eval_tasks" for root in (repository(), packaged()))
    return (require_own(own), brought)


class _Metric(Struct):
    metric: str


class _Filter(Struct):
    name: str


class _Task(Struct):
    """What is read of a task's file; what else it holds (``!function``) is not looked at."""

    metric_list: list[_Metric] = []
    filter_list: list[_Filter] | None = None


def _scores(file: Path) -> frozenset[str]:
    """The scores that a task's file names; none: another file has them, or it is no task's."""
    try:
        root = compose(read_input(file, LARGEST_FILE).decode(), file)
        # Every scalar as text, whatever its tag.
        task = msgspec.convert(root and yaml.BaseLoader("").construct_document(root), _Task)
    except (OSError, UnicodeDecodeError, InputError, yaml.YAMLError, msgspec.ValidationError):
        return frozenset()  # lm_eval itself says what is wrong with a task
    metrics = [one.metric for one in task.metric_list]
    filters = ["none"] if task.filter_list is None else [one.name for one in task.filter_list]
    if max(len(metrics), len(filters)) > _MOST_NAMES:
        return frozenset()
    return frozenset(f"{metric}:{name}" for metric in metrics for name in filters)
