"""Build source: what is needed to start one engine build again. A plain value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_ID = "sha256:"


@dataclass(frozen=True)
class BuildSource:
    """How an engine build is started; what is empty is as it is on this machine.

    Attributes:
        image: container image that holds its programs.
        digest: what that image is exactly in its registry, ``sha256:…``; empty: not known.
        image_id: what that image is exactly on the machine where it was used, ``sha256:…``: all
            that is known of an image that was built there and never pushed.
        prefix: folder of an installation with a ``bin/``, e.g. a virtual environment.
        programs: variable ``PERFGATE_PROGRAM_…`` → how that program is called.
        settings: settings changed in the scenario, ``KEY=VALUE`` as ``--inject`` takes them.
    """

    image: str = ""
    digest: str = ""
    image_id: str = ""
    prefix: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()

    @property
    def names_programs(self) -> bool:
        """Whether its programs are others than those of this environment."""
        return bool(self.image or self.prefix or self.programs)

    @property
    def image_to_start(self) -> str:
        """The image by its digest, which no later push changes; else by its id, else by its name.

        Empty where there is no image.
        """
        if not self.image or "@" in self.image:
            return self.image
        if self.digest:
            return f"{without_tag(self.image)}@{self.digest}"
        return self.image_id or self.image

    @property
    def in_words(self) -> str:
        """``nvcr.io/…:1.2.0, PERFGATE_PROGRAM_TRTLLM_SERVE=/opt/a``, as a command line has it."""
        image = self.image if self.image_to_start.startswith(_ID) else self.image_to_start
        parts = [image, self.prefix, *(f"{name}={call}" for name, call in self.programs.items())]
        return ",".join([*filter(None, parts), *self.settings]) or "this"


def without_tag(image: str) -> str:
    """The image's name without tag and digest; a port of its registry stays."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"
