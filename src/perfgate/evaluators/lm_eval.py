"""lm_eval: EleutherAI's harness against an OpenAI-compatible server; its command.

Its results are read by `lm_eval_results`.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from perfgate.clients.base import Target
from perfgate.command import Command
from perfgate.errors import InputError, MissingProgram, RunError
from perfgate.evaluators import lm_eval_results
from perfgate.evaluators.base import Evaluator, evaluator
from perfgate.measurement import Measurement
from perfgate.paths import repository
from perfgate.programs import LM_EVAL
from perfgate.scenarios.scenario import AccuracyTask

MAX_RETRIES = 2  # of one request, so that a dead server is told in seconds, not minutes


def own_tasks() -> Path:
    """The folder of the tasks that perfgate brings along."""
    return repository() / "fixtures" / "lm_eval_tasks"


@evaluator("lm_eval")
class LmEval(Evaluator):
    """Generative tasks of lm_eval through the server's completions endpoint.

    Tasks that score given answers by their log-likelihood need lm_eval's own tokenizer and are
    not set up here.
    """

    name = "lm_eval"

    def version(self) -> str:
        """See `Evaluator.version`; lm_eval has no option that tells it, so its Python is asked."""
        code = "from importlib.metadata import version; print(version('lm_eval'))"
        argv = (_interpreter(LM_EVAL.find()[0]), "-c", code)
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise MissingProgram(f"lm_eval does not tell its version: {error}") from error
        return done.stdout.strip()

    def diagnose(self, log: Iterable[str]) -> RunError | None:
        """See `Evaluator.diagnose`; the log's tail is seldom the cause."""
        return lm_eval_results.diagnose(log)

    def command(self, target: Target, task: AccuracyTask, folder: Path) -> Command:
        """See `Evaluator.command`.

        Raises:
            InputError: an extra field of the requests that lm_eval's command line cannot carry.
        """
        model = {
            "model": target.endpoint.model,
            "base_url": f"{target.endpoint.url}/v1/completions",
            "num_concurrent": task.concurrency,
            "max_retries": MAX_RETRIES,
            # Prompts travel as text: tokenizing is part of what is tested.
            "tokenized_requests": False,
            "tokenizer_backend": None,
        }
        # lm_eval puts what it does not know among these into the body of every request.
        body: dict[str, object] = {"temperature": task.temperature}
        if task.add_special_tokens is not None:
            body["add_special_tokens"] = task.add_special_tokens
        body |= task.extra_body
        argv = [*LM_EVAL.find(), "run", "--model", "local-completions"]
        argv += ["--model_args", _pairs(model), "--gen_kwargs", _pairs(body)]
        argv += ["--tasks", task.task, "--include_path", str(own_tasks())]
        argv += ["--num_fewshot", str(task.fewshot), "--batch_size", str(task.batch_size)]
        argv += ["--seed", "0"]
        if task.limit is not None:
            argv += ["--limit", str(task.limit)]
        argv += ["--log_samples", "--output_path", str(folder.resolve())]
        return Command(tuple(argv), _environment(task, folder))

    def parse(self, task: AccuracyTask, folder: Path) -> Measurement:
        """See `Evaluator.parse`."""
        return lm_eval_results.parse(task, folder)


def _interpreter(program: str) -> str:
    """The Python that runs `program`: itself, the one its first line names, or the one beside."""
    if Path(program).name.startswith("python"):
        return program
    with Path(program).open("rb") as script:
        first = script.readline(4096).decode(errors="replace").split()
    if first and first[0].startswith("#!/") and "python" in Path(first[0]).name:
        return first[0][2:]
    return str(Path(program).parent / "python")


def _environment(task: AccuracyTask, folder: Path) -> dict[str, str]:
    env = {"DO_NOT_TRACK": "1", "TOKENIZERS_PARALLELISM": "false"}
    if (own_tasks() / task.task).is_dir():
        # The data is in the repository: no network, and no cache that runs could share.
        env |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder.resolve() / "huggingface")}
    return env


def _pairs(fields: dict[str, object]) -> str:
    """``key=value,…`` as lm_eval's command line reads it back.

    Raises:
        InputError: a value with a comma or quote, which it would read as something else.
    """
    for name, value in fields.items():
        if isinstance(value, str) and set(value) & set(",'\"{}[]()"):
            raise InputError(
                "lm_eval cannot be given this value",
                field=name,
                found=repr(value),
                expected="text without commas, quotes and brackets",
            )
    return ",".join(f"{name}={value}" for name, value in fields.items())
