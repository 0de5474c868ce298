"""The pinned packages: whole, with hashes, and the only ones that `make` installs."""

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tables import each

from ci.maintenance.pinned_packages import CONSTRAINTS, FOLDER, SBOM, pins

ROOT = Path(__file__).parents[2]
FILES = sorted(FOLDER.glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]


def pinned(*names: str) -> dict[str, Requirement]:
    """Package → its pin, of the files named."""
    texts = [pins((FOLDER / f"{name}.txt").read_text()) for name in names]
    found = [Requirement(pin) for text in texts for pin in text]
    return {canonicalize_name(one.name): one for one in found}


@each("path", FILES, ids=lambda path: path.name)
def test_each_package_has_one_exact_version_and_hashes(path: Path) -> None:
    found = pins(path.read_text())
    assert found
    for pin, lines in found.items():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+(\+cpu)?( ; .+)?", pin), pin
        first, *hashes = lines.split("\n")
        assert first == pin + " \\"
        assert hashes
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", one) for one in hashes)


@each("path", [*FILES, CONSTRAINTS], ids=lambda path: path.name)
def test_no_index_and_no_path(path: Path) -> None:
    lines = [line.strip() for line in path.read_text().splitlines() if not line.startswith("#")]
    assert not [one for one in lines if "/" in one or (one[0] == "-" and "--hash" not in one)]


def test_the_constraints_are_the_same_versions() -> None:
    lines = CONSTRAINTS.read_text().splitlines()
    constraints = {str(Requirement(one)) for one in lines if not one.startswith("#")}
    names = ("build", "base", "lm_eval", "local", "dev", "model")
    versions = {str(one).partition(";")[0].strip() for one in pinned(*names).values()}
    assert {one.partition(";")[0].strip() for one in constraints} == versions


@each(
    "wanted, names",
    [
        (PROJECT["build-system"]["requires"], ("build",)),
        (PROJECT["project"]["dependencies"], ("base",)),
        (EXTRAS["lm-eval"], ("base", "lm_eval")),
        (EXTRAS["local"], ("base", "lm_eval", "local")),
        (EXTRAS["dev"], ("base", "lm_eval", "local", "dev")),
    ],
)
def test_whatever_the_project_wants_is_pinned(wanted: list[str], names: tuple[str, ...]) -> None:
    found = pinned(*names)
    for one in map(Requirement, wanted):
        (pin,) = found[canonicalize_name(one.name)].specifier
        assert one.specifier.contains(pin.version), f"{one} is pinned to {pin.version}"


def test_the_bill_of_materials_lists_what_perfgate_imports() -> None:
    bill = json.loads(SBOM.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "perfgate"
    assert bill["metadata"]["component"]["version"] == PROJECT["project"]["version"]
    assert "timestamp" not in bill["metadata"]
    listed = {canonicalize_name(one["name"]): one["version"] for one in bill["components"]}
    there = {"sys_platform": "linux", "python_full_version": "3.11.0", "python_version": "3.11"}
    wanted = {
        name: next(iter(one.specifier)).version
        for name, one in pinned("base").items()
        if one.marker is None or one.marker.evaluate(there)
    }
    assert listed == wanted


def test_make_installs_by_hash_or_this_project_alone() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "setup-dev", "UV="],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    installs = [shlex.split(one) for one in done.stdout.splitlines() if "pip install" in one]
    assert len(installs) >= 5
    for words in installs:
        assert "--no-deps" in words
        assert "--no-build-isolation" in words
        by_hash = "--require-hashes" in words and words[-2] == "-r"
        assert by_hash or words[-2:] == ["--editable", "."], words
