"""What each stand-in for the module pynvml has: the real one's names, and machines to open."""

import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pynvml


class FakePynvml(types.ModuleType):
    """A module with the real one's constants and errors; a subclass answers for its GPUs.

    Args:
        gpus: what the subclass knows of each.
        init_error: NVML's error when it is opened; 0: none.

    Attributes:
        open: how often it was opened and not shut down.
    """

    def __init__(self, gpus: Sequence[Any], init_error: int = 0) -> None:
        super().__init__("pynvml")
        self.gpus = gpus
        self.init_error = init_error
        self.open = 0
        for name in dir(pynvml):
            if name.startswith(("NVML_", "NVMLError", "NVMLLibraryMismatchError", "nvmlClocks")):
                setattr(self, name, getattr(pynvml, name))

    def have(self, functions: Iterable[str], make: Callable[[str], Callable[..., Any]]) -> None:
        """Have the functions of those names, each as `make` makes it; the real module has them."""
        for function in functions:
            assert hasattr(pynvml, function), f"the real module has no {function}"
            setattr(self, function, make(function))

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's names
        if self.init_error:
            raise pynvml.NVMLError(self.init_error)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)
