"""`python -m perfgate`: the `perfgate` command where its script is not on PATH."""

import sys

from perfgate.cli.main import main

sys.exit(main())
