# What clients of this cluster need.
export SLURM_CONF=@STATE@/etc/slurm.conf
# all nodes are behind the loopback device, which Open MPI leaves out if not told
export OMPI_MCA_btl_tcp_if_include=lo
export OMPI_MCA_oob_tcp_if_include=lo
export OMPI_MCA_orte_tmpdir_base=@STATE@/tmp
# Two clusters on one machine have nodes, and jobs, of the same names: by default their ranks would
# find each other's shared memory.
export OMPI_MCA_btl_vader_backing_directory=@STATE@/tmp
