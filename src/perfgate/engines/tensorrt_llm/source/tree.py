"""A source tree of TensorRT-LLM: an unpacked folder, or a wheel. Its files are parsed, never run.

The tree is not trusted: no link is followed, and what is too large, or too many, is not read.
"""

import ast
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from perfgate.core.errors import InputError
from perfgate.core.input_files import open_input
from perfgate.core.untrusted_files import read_regular

PACKAGE = "tensorrt_llm"
VERSION_FILE = f"{PACKAGE}/version.py"
_LARGEST = 4 * 2**20  # bytes of one file; llm_args.py has a third of a megabyte
_MOST = 400  # files
_LINES = 100_000


class SourceTree:
    """The files of one release.

    Attributes:
        name: the folder or wheel, for messages.
    """

    def __init__(self, name: Path, read: Callable[[str], bytes]) -> None:
        self.name = name
        self._read = read
        self._parsed: dict[str, ast.Module | None] = {}

    @classmethod
    def of(cls, path: Path) -> "SourceTree":
        """The tree at `path`: a folder that holds the package, or a wheel.

        Raises:
            InputError: it is neither.
        """
        try:
            path.stat()
            tree = cls._of_folder(path) if path.is_dir() else cls._of_wheel(path)
            found = tree.module(VERSION_FILE) is not None
        except OSError as error:
            raise _none(path, error.strerror or str(error)) from error
        if not found:
            raise _none(path, f"no {VERSION_FILE}")
        return tree

    @classmethod
    def _of_folder(cls, path: Path) -> "SourceTree":
        root = path.resolve()
        if root.name == PACKAGE and not (root / PACKAGE).is_dir():
            root = root.parent
        return cls(path, lambda name: read_regular(root / name, _LARGEST))

    @classmethod
    def _of_wheel(cls, path: Path) -> "SourceTree":
        def read(name: str) -> bytes:
            with open_input(path) as file, zipfile.ZipFile(file) as wheel:
                try:
                    entry = wheel.getinfo(name)
                except KeyError:
                    raise FileNotFoundError(name) from None
                with wheel.open(entry) as content:
                    text = content.read(_LARGEST + 1)
            if len(text) > _LARGEST:
                raise InputError("too large to be read", file=path, field=name)
            return text

        tree = cls(path, read)
        try:
            tree.module(VERSION_FILE)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise _none(path, f"no wheel: {error}") from error
        return tree

    def module(self, name: str) -> ast.Module | None:
        """The parsed file of that name, relative to the tree; None: there is none.

        Raises:
            InputError: it cannot be parsed, or is too large; a link stands there.
        """
        if name in self._parsed:
            return self._parsed[name]
        if len(self._parsed) >= _MOST:
            raise InputError(
                "too many files", file=self.name, found=f"more than {_MOST}", expected="fewer"
            )
        parsed = None
        with suppress(FileNotFoundError, NotADirectoryError):
            parsed = self._parse(name, self._read(name))
        self._parsed[name] = parsed
        return parsed

    def _parse(self, name: str, content: bytes) -> ast.Module:
        try:
            text = content.decode("utf-8")
            if text.count("\n") > _LINES:
                raise ValueError(f"more than {_LINES} lines")
            return ast.parse(text, filename=name)
        except SyntaxError as error:
            raise InputError(
                f"not Python that can be read: {error.msg}",
                file=self.name / name,
                line=error.lineno,
                expected="a file of TensorRT-LLM, readable by the Python that runs perfgate",
            ) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise InputError(
                f"not Python that can be read: {error or type(error).__name__}",
                file=self.name / name,
            ) from error


def module_file(dotted: str) -> tuple[str, str]:
    """The files that a module's name may stand for: ``a/b.py``, ``a/b/__init__.py``."""
    path = dotted.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"


def dotted_name(file: str) -> str:
    """The module's name of a file, without ``__init__``."""
    parts = PurePosixPath(file).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _none(path: Path, found: str) -> InputError:
    return InputError(
        "no source tree of TensorRT-LLM",
        file=path,
        found=found,
        expected=f"a folder that holds {PACKAGE}/, or a wheel",
        hint="unpack the release's source archive, or name its .whl file",
    )
