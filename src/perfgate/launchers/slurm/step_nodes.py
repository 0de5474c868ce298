"""StepNodes: what the nodes of one step know of its processes, asked by further steps."""

from dataclasses import dataclass
from pathlib import Path

from perfgate.core.errors import RunError
from perfgate.launchers.nodes.node_query import LOOK_S, dump_argv, gather_parts, look_argv
from perfgate.launchers.slurm.calls import call
from perfgate.launchers.slurm.script import JobSteps


@dataclass(frozen=True)
class StepNodes:
    """Nodes of a job, as a `NodeQuery`.

    Attributes:
        steps: how a program becomes a step of the job.
        nodes: their names.
        folder: working folder of what is asked.
    """

    steps: JobSteps
    nodes: tuple[str, ...]
    folder: Path

    def look(self, *words: str, seconds: float = LOOK_S) -> str:
        """As in `NodeQuery`.

        Raises:
            RunError: class ``slurm_unreachable``: a node could not be asked.
        """
        before = self.steps.srun(self.nodes, "look", self.folder)
        # Who may not take long is not to wait for a controller either.
        return call((*before, *look_argv(*words)), seconds, patient=seconds >= LOOK_S).strip()

    def evidence(self, mark: str, file: Path, seconds: float) -> None:
        """As in `NodeQuery`."""
        before = self.steps.srun(self.nodes, "evidence", self.folder)
        failed = ""
        try:
            call((*before, *dump_argv(mark, file)), seconds, patient=False)
        except RunError as error:
            failed = f"no more from the nodes: {error}\n"
        gather_parts(file, self.nodes, failed)
