"""A stand-in of mpi4py over the real library of Open MPI 4: just what a rank needs to say hello."""

__version__ = "0 (stand-in)"
