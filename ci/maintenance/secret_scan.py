"""No secret is in the repository: detect-secrets on every file that git knows.

Detectors by entropy are left out, as commits and content hashes are random, too; so is that of
Telegram, whose tokens look like a measured value with a colon. A line that only looks like a secret
ends in the comment ``pragma: allowlist secret``.

    .venv/bin/python ci/maintenance/secret_scan.py [FILE...]

Exit status: 0 none, 1 some, 2 nothing was searched.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import default_settings

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = frozenset(
    {"HexHighEntropyString", "Base64HighEntropyString", "TelegramBotTokenDetector"}
)
# Tests of masking, whose secrets are made up.
MADE_UP = (
    "tests/core/programs/test_command.py",
    "tests/core/programs/test_raw_log.py",
    "tests/core/programs/test_environment_variables.py",
    "tests/core/test_redaction.py",
    "tests/data/redaction.toml",
    "tests/suite/planted.py",
)


def secrets_in(files: Sequence[Path]) -> Iterator[str]:
    """``FILE:LINE: KIND`` of what looks like a secret.

    Args:
        files: below `ROOT`, or absolute.
    """
    with default_settings() as settings:
        detectors: list[type] = list(get_mapping_from_secret_type_to_class().values())
        settings.disable_plugins(*LEFT_OUT & {detector.__name__ for detector in detectors})
        found = SecretsCollection(root=str(ROOT))
        found.scan_files(*map(str, files))
        for name, secret in found:
            yield f"{name}:{secret.line_number}: {secret.type}"


def main(names: Sequence[str]) -> int:
    """Search the files named, or all that git knows."""
    if not names:
        git = ("git", "-C", str(ROOT), "ls-files", "-z")
        done = subprocess.run(git, stdout=subprocess.PIPE, text=True, check=False)
        tracked = [one for one in done.stdout.split("\0") if (ROOT / one).is_file()]
        names = [one for one in tracked if one not in MADE_UP]
    if not names:
        print("secret_scan: git names no file here, so nothing was searched", file=sys.stderr)
        return 2
    told = sorted(secrets_in([Path(one) for one in names]))
    for one in told:
        print(f"{one}: take it out, or end the line in `pragma: allowlist secret`")
    print(f"secret_scan: {len(names)} files searched, {len(told)} with what looks like a secret")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
