# ruff: noqa: N802, N999
"""COMM_WORLD by ctypes; variables of tests make a rank hang, be silent, be alone or crash."""

import atexit
import ctypes
import os
import time

if "STAND_IN_ALONE" in os.environ:
    for name in [one for one in os.environ if one.startswith(("OMPI_", "PMIX_"))]:
        del os.environ[name]
        os.unsetenv(name)

_LIBRARY = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
if "STAND_IN_CRASHES" in os.environ:
    ctypes.string_at(0)
_LIBRARY.MPI_Init(None, None)
atexit.register(_LIBRARY.MPI_Finalize)
_WORLD = ctypes.byref(ctypes.c_char.in_dll(_LIBRARY, "ompi_mpi_comm_world"))
_INT = ctypes.byref(ctypes.c_char.in_dll(_LIBRARY, "ompi_mpi_int"))
_SUM = ctypes.byref(ctypes.c_char.in_dll(_LIBRARY, "ompi_mpi_op_sum"))


class _World:
    def Get_rank(self) -> int:
        rank = ctypes.c_int()
        _LIBRARY.MPI_Comm_rank(_WORLD, ctypes.byref(rank))
        if os.environ.get("STAND_IN_RANK_SILENT") == str(rank.value):
            time.sleep(3600)
        return rank.value

    def Get_size(self) -> int:
        size = ctypes.c_int()
        _LIBRARY.MPI_Comm_size(_WORLD, ctypes.byref(size))
        return size.value

    def allreduce(self, mine: int) -> int:
        if os.environ.get("STAND_IN_RANK_HANGS") == str(self.Get_rank()):
            time.sleep(3600)
        given, found = ctypes.c_int(mine), ctypes.c_int()
        _LIBRARY.MPI_Allreduce(ctypes.byref(given), ctypes.byref(found), 1, _INT, _SUM, _WORLD)
        return found.value


def Get_library_version() -> str:
    text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
    _LIBRARY.MPI_Get_library_version(text, ctypes.byref(length))
    return text.value.decode()


COMM_WORLD = _World()
