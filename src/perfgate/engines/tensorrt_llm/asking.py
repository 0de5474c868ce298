"""Ask an installed program something harmless, once: its version, its options."""

import subprocess
from functools import lru_cache

LIMIT_S = 180.0  # importing torch and the bindings from a cold network disk takes minutes


@lru_cache(maxsize=64)
def answer(argv: tuple[str, ...]) -> str:
    """Everything that the program prints, log lines included; one that fails says why instead."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT_S:g} s"
    except OSError as error:
        return str(error)
    return done.stdout
