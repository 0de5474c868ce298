"""Lock a file until standard input ends: holding.py FILE USER; it becomes USER first."""

import fcntl
import os
import sys

os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
os.umask(0)
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
