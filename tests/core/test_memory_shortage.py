"""The next step after a lack of GPU memory: who else is on the GPU, or what did not fit."""

from pathlib import Path

from tables import each

from perfgate.core.failures import FAILURES, diagnose

LOGS = Path(__file__).parents[1] / "data" / "failures"
GENERAL = FAILURES["oom"].next_step
FRACTION = "KV cache fraction"
WORLD = "[TensorRT-LLM][INFO] MPI size: {size}, MPI local size: {local}, rank: 0"
USES = "[TensorRT-LLM][INFO] Rank {rank} is using GPU {gpu}"
BARE = "RuntimeError: CUDA out of memory"


def step(*lines: str) -> str:
    found = diagnose(lines)
    assert found is not None
    assert found.failure == "oom"
    return found.next_step


def step_of(file: str) -> str:
    return step(*(LOGS / file).read_text().splitlines())


def torch(processes: str, tried: str = "1.00 GiB", prefix: str = "", gpu: int = 3) -> str:
    return (
        f"{prefix}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} "
        f"has a total capacity of 100.00 GiB of which 0.50 GiB is free. {processes}"
    )


OWN = "Including non-PyTorch memory, this process has 60.00 GiB memory in use."


def test_another_process_on_the_gpu_is_told_and_no_setting_is_blamed() -> None:
    said = step_of("oom.foreign_process.log")
    assert said.startswith("GPU 3 is shared: process 4242 had 70.00 GiB of it")
    assert "nvidia-smi" in said
    assert FRACTION not in said


@each("file", ["oom.two_ranks.log", "oom.rank_binding.log"])
def test_two_ranks_on_one_gpu_are_told_to_be_bound(file: str) -> None:
    said = step_of(file)
    ranks = "2 and 6" if "two" in file else "0 and 1"
    assert said.startswith(f"ranks {ranks} are on one GPU (GPU 0): give each rank a GPU of its own")
    assert FRACTION not in said


def test_memory_that_was_taken_before_the_engine_came() -> None:
    said = step_of("oom.vllm_startup.log")
    assert said.startswith("something else had the GPU's memory before the engine")
    assert FRACTION not in said


@each(
    ("processes", "tried"),
    [
        (OWN, "1.00 GiB"),
        ("Process 12 has 99.00 GiB memory in use.", "1.00 GiB"),  # itself, seen from a container
        (f"Process 12 has 270.00 MiB memory in use. {OWN}", "40.00 MiB"),  # a display
        (f"Process 12 has 4.00 GiB memory in use. {OWN}", "8.00 GiB"),  # not enough to matter
    ],
)
def test_nobody_is_blamed_who_is_not_at_fault(processes: str, tried: str) -> None:
    assert step(torch(processes, tried)) == GENERAL


def test_of_processes_that_are_all_named_by_number_one_is_the_program_itself() -> None:
    both = "Process 7 has 60.00 GiB memory in use. Process 8 has 39.00 GiB memory in use."
    assert step(torch(both)).startswith("GPU 3 is shared: process 8 had 39.00 GiB of it")


@each(
    ("prefixes", "together"),
    [
        (("[1,2]<stderr>:", "[1,6]<stderr>:"), True),
        (("[rank2]: ", "[rank6]: "), True),
        (("2: ", "6: "), True),
        (("[rank2]: ", "[rank2]: "), False),
        (("", ""), False),
    ],
)
def test_ranks_are_known_by_what_the_launcher_puts_before_their_lines(
    prefixes: tuple[str, str], together: bool
) -> None:
    other = f"Process 12 has 39.00 GiB memory in use. {OWN}"
    said = step(*(torch(other, prefix=prefix) for prefix in prefixes))
    assert said.startswith("ranks 2 and 6 are on one GPU") == together
    assert said.startswith("GPU 3 is shared") != together


def test_the_same_number_of_a_gpu_on_two_nodes_is_another_gpu() -> None:
    other = f"Process 12 has 39.00 GiB memory in use. {OWN}"
    lines = [torch(other, prefix=f"[rank{rank}]: ", gpu=0) for rank in (0, 8)]
    assert step(WORLD.format(size=16, local=8), *lines).startswith("GPU 0 is shared")
    uses = [USES.format(rank=rank, gpu=0) for rank in (0, 8)]
    assert step(WORLD.format(size=16, local=8), *uses, BARE) == GENERAL
    assert step(WORLD.format(size=16, local=16), *uses, BARE).startswith("ranks 0 and 8")


def test_ranks_that_name_one_gpu_and_find_nobody_on_it_each_have_their_own() -> None:
    """CUDA_VISIBLE_DEVICES may give each rank one GPU, which it then calls GPU 0."""
    uses = [USES.format(rank=rank, gpu=0) for rank in (0, 1)]
    alone = torch("Process 12 has 99.00 GiB memory in use.", gpu=0)
    assert step(WORLD.format(size=8, local=8), *uses, alone) == GENERAL


@each(
    ("component", "advice", "is_general_too"),
    [
        ("KV cache", "lower the KV cache fraction", True),
        ("Initial KV cache (temporary for its size estimation)", "lower max_num_tokens", False),
        ("Additional executor resources", "lower max_num_tokens", False),
        ("Model", "more GPUs", False),
        ("Draft model for speculative decoding", "draft layers", False),
        ("Sampler", "lower max_seq_len", False),
        ("Something new", "", True),
    ],
)
def test_the_advice_fits_the_component(component: str, advice: str, is_general_too: bool) -> None:
    cause = "RuntimeError: Executor creation failed due to insufficient GPU memory."
    said = step(cause, "", f"The following component could not be created: {component}")
    assert advice in said.partition("; in general")[0]
    assert said.endswith(GENERAL) == is_general_too
    assert (FRACTION in said) == is_general_too


@each("file", ["oom.activation.log", "oom.executor.log", "oom.model.log"])
def test_a_program_alone_on_its_gpu_is_told_what_to_lower(file: str) -> None:
    said = step_of(file)
    assert "lower" in said
    assert "shared" not in said
