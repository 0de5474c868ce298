"""A program of ours that holds the slider at a level until it is ended, or for a moment."""

import sys
import time

from perfgate.preflight.boost import boosted

with boosted(int(sys.argv[1])):
    print("boosted", flush=True)
    time.sleep(float(sys.argv[2]))
print("over", flush=True)
