"""The site file: what it says is read, and what is wrong with it is told with its line."""

from pathlib import Path

import pytest
from refusals import refused
from tables import each, tables_of

from perfgate.core.errors import SeveralInputErrors
from perfgate.launchers.site import DockerSite, Site, SlurmContainer, SlurmSite, load_site

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str) -> Path:
    file = folder / "site.yaml"
    file.write_text(text)
    return file


def test_the_example_is_right_and_says_every_field() -> None:
    site = load_site(ROOT / "site.example.yaml")
    image = "nvcr.io#nvidia/tensorrt-llm/release:1.0.0"
    assert (site.slurm.partition, site.slurm.options) == ("batch", ("--comment=perfgate",))
    assert site.slurm.container == SlurmContainer(image, ("/models:/models",))
    assert site.docker.mounts == ("/models:/models:ro",)
    assert site.mpirun.hosts == ("node1", "node2")
    assert site.mpirun.mca == {"btl_tcp_if_include": "eth0"}
    assert (site.share_cpu, site.wait_for_gpus_s) == (True, 3600)
    text = (ROOT / "site.example.yaml").read_text()
    for part, defaults in ((site.slurm, Site().slurm), (site.docker, Site().docker)):
        left_out = {name for name, one in vars(part).items() if one == getattr(defaults, name)}
        assert {one for one in left_out if f"{one}:" not in text} <= {"reservation", "nodelist"}
    assert not [name for name in vars(site.mpirun) if f"{name}:" not in text]


def test_without_a_file_the_defaults_hold_else_the_named_one(suite_root, tmp_path, monkeypatch):
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    assert load_site() == Site()
    written(suite_root, "schema_version: 1\nslurm: {qos: high}\n")
    assert load_site() == Site(SlurmSite(qos="high"))
    other = written(tmp_path, "schema_version: 1\nslurm: {qos: low}\n")
    monkeypatch.setenv("PERFGATE_SITE", str(other))
    assert load_site() == Site(SlurmSite(qos="low"))
    monkeypatch.setenv("PERFGATE_SITE", str(tmp_path / "missing.yaml"))
    refused(load_site, match="PERFGATE_SITE: no such file", error=SeveralInputErrors)


@each("lines, words", tables_of("site_file")["wrong"])
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, lines: str, words: str) -> None:
    file = written(tmp_path, f"schema_version: 1\n{lines}\n")
    caught = refused(load_site, file, error=SeveralInputErrors)
    (error,) = caught.errors
    assert f"{file}:" in str(error)
    assert words in str(error)


def test_commands_of_a_start_are_lists_of_words_and_null_leaves_it_to_docker(tmp_path) -> None:
    lines = "before: [[sudo, -n, nvidia-smi, -pm, '1'], ['true']]\ncommand_timeout_s: 5"
    lines += "\ndocker: {user: null, cache: null, ipc: null}"
    file = written(tmp_path, f"schema_version: 1\n{lines}\n")
    before = (("sudo", "-n", "nvidia-smi", "-pm", "1"), ("true",))
    docker = DockerSite(user=None, cache=None, ipc=None)
    assert (site := load_site(file)) == Site(docker=docker, before=before, command_timeout_s=5.0)
    assert (site.file, site.after) == (file, ())


def test_an_empty_file_is_told_what_to_hold(tmp_path: Path) -> None:
    with pytest.raises(SeveralInputErrors, match=r"site\.example\.yaml"):
        load_site(written(tmp_path, ""))
    with pytest.raises(SeveralInputErrors, match="schema_version: missing"):
        load_site(written(tmp_path, "slurm: {}\n"))
