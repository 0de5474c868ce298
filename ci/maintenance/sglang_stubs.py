"""Empty modules in place of what SGLang imports and a CPU without its kernels does not have.

`sgl_kernel` (SGLang's own kernels: no package of them is for a CPU) and `torchvision` (no build for
torch's CPU build) become modules in which every name is a class that does nothing. With
``--device cpu --attention-backend torch_native`` a Llama model is then computed by plain torch. So
server, scheduler, cache, HTTP, settings and ends are SGLang's, its kernels are not, and no time
measured of it means anything. Who imports `sgl_kernel` is told so, once a process, on standard
error.

    python sglang_stubs.py    install it into the environment of the Python that runs it

There a line in a ``.pth`` file imports this module wherever that Python starts, in SGLang's
processes too. `make sglang-env` calls it; nothing of perfgate imports it.
"""

import importlib.abc
import importlib.machinery
import sys
import sysconfig
import types
from collections.abc import Sequence
from pathlib import Path

KERNELS = "sgl_kernel"
STUBBED = (KERNELS, "torchvision")
VERSION = "0.0.0"
WARNING = "SGLang's kernels are stubs here: no time measured of this process means anything"


class _AnyName(type):
    """Of a class whose every attribute is that attribute's name, as the members of an enum are."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _Stub(types.ModuleType):
    """A package in which every name is a class that takes any arguments and does nothing."""

    __version__ = VERSION

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _AnyName(
            name,
            (),
            {
                "__init__": lambda *_, **__: None,
                "__class_getitem__": classmethod(lambda cls, _: cls),
            },
        )
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stub for what nobody else has found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] not in STUBBED:
            return None
        if fullname == KERNELS:
            print(WARNING, file=sys.stderr, flush=True)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        del module  # it is complete


def install() -> Path:
    """Copy this file into the running Python's packages, and have it imported there at each start.

    Returns:
        Where it is now.
    """
    here = Path(__file__)
    site = Path(sysconfig.get_path("purelib"))
    copy = site / here.name
    copy.write_text(here.read_text())
    (site / f"{here.stem}.pth").write_text(f"import {here.stem}\n")
    return copy


if __name__ == "__main__":
    print(install())
else:
    sys.meta_path.append(_Finder())
