"""Build source: what is needed to start one engine build again. A plain value."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BuildSource:
    """How an engine build is started; what is empty is as it is on this machine.

    Attributes:
        image: container image that holds its programs.
        digest: what that image is exactly, ``sha256:…``; empty: not known.
        prefix: folder of an installation with a ``bin/``, e.g. a virtual environment.
        programs: variable ``PERFGATE_PROGRAM_…`` → path of that program.
        settings: settings changed in the scenario, ``KEY=VALUE`` as ``--inject`` takes them.
    """

    image: str = ""
    digest: str = ""
    prefix: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
