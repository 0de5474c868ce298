"""The site file: what it says reaches Slurm, and what is wrong with it is told with its line."""

from pathlib import Path

import pytest

from perfgate.errors import SeveralInputErrors
from perfgate.site import SlurmContainer, SlurmSite, load_site

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str) -> Path:
    file = folder / "site.yaml"
    file.write_text(text)
    return file


def test_the_example_is_right_and_says_every_field() -> None:
    site = load_site(ROOT / "site.example.yaml")
    assert site.partition == "batch"
    assert site.container == SlurmContainer(
        "nvcr.io#nvidia/tensorrt-llm/release:1.0.0", ("/models:/models",)
    )
    assert site.options == ("--comment=perfgate",)
    left_out = {name for name, value in vars(site).items() if value == getattr(SlurmSite(), name)}
    text = (ROOT / "site.example.yaml").read_text()
    assert {name for name in left_out if f"{name}:" not in text} == {"reservation", "nodelist"}


def test_without_a_file_slurms_defaults_hold(
    suite_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    assert load_site() == SlurmSite()
    written(suite_root, "schema_version: 1\nslurm: {qos: high}\n")
    assert load_site() == SlurmSite(qos="high")


def test_the_environment_names_another_file(
    suite_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(suite_root, "schema_version: 1\nslurm: {qos: high}\n")
    monkeypatch.setenv(
        "PERFGATE_SITE", str(written(tmp_path, "schema_version: 1\nslurm: {qos: low}\n"))
    )
    assert load_site() == SlurmSite(qos="low")
    monkeypatch.setenv("PERFGATE_SITE", str(tmp_path / "missing.yaml"))
    with pytest.raises(SeveralInputErrors):
        load_site()


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("  partion: batch", 3, "did you mean partition?"),
        ("  qos: 5", 3, "quote it"),
        ("  exclusive: sometimes", 3, "true or false"),
        ("  partition: batch\n  pending_limit_s: 0", 4, "out of range"),
        ("  container: {mounts: []}", 3, "image: missing"),
        ("  clients: elsewhere", 3, "beside (on the server's node) or login"),
        ('  options: ["--a=b\\nc"]', 3, "malformed"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, lines: str, line: int, words: str
) -> None:
    file = written(tmp_path, f"schema_version: 1\nslurm:\n{lines}\n")
    with pytest.raises(SeveralInputErrors) as caught:
        load_site(file)
    (error,) = caught.value.errors
    assert f"{file}:{line}: slurm." in str(error)
    assert words in str(error)


def test_an_empty_file_is_told_what_to_hold(tmp_path: Path) -> None:
    with pytest.raises(SeveralInputErrors, match=r"site\.example\.yaml"):
        load_site(written(tmp_path, ""))
    with pytest.raises(SeveralInputErrors, match="schema_version: missing"):
        load_site(written(tmp_path, "slurm: {}\n"))
