"""Stands for the module pynvml in sessions that tests start: two idle B200 that exist only here."""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_HERE = Path(__file__).resolve()
_others = [folder for folder in sys.path if Path(folder).resolve() != _HERE.parent]
_spec = PathFinder.find_spec("pynvml", _others)
_real = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_real)
sys.modules["pynvml"] = _real  # while the stand-in takes the real one's names
sys.path.append(str(_HERE.parents[2]))

from fake_pynvml import FakeGpu, FakePynvml  # noqa: E402

sys.path.pop()
sys.modules["pynvml"] = FakePynvml(FakeGpu("GPU-0-made"), FakeGpu("GPU-1-made"))
