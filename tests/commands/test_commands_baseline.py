import json
from pathlib import Path

import pytest
from building import baseline, entry, of_commit, outcome

from perfgate.baselines import candidate_store, own_store, read, suite_store
from perfgate.cli import main
from perfgate.gate.verdict import Verdict
from perfgate.records import RunFolder, now

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def stores(suite_root: Path) -> dict[str, Path]:
    """One baseline in each store."""
    return {
        "suite": suite_store().save(
            baseline(entries={"c1": entry(100.0, 101.0), "c4": entry(9.0)})
        ),
        "candidate": candidate_store().save(of_commit("next", entries={"c1": entry(120.0)})),
        "own": own_store().save(of_commit("mine", accepted_by="self")),
    }


@pytest.fixture
def run(suite_root: Path) -> Path:
    """A run with one usable probe, and one that regressed."""
    folder = RunFolder.create(suite_root / "runs" / "one", {})
    for probe, verdict in (("c1", Verdict.PASS), ("c4", Verdict.REGRESSION)):
        line = {
            "scenario": "small-serve",
            "hardware": "cpu",
            "probe": probe,
            "role": "new",
            "machine_bound": False,
            "started": now(),
            "engine": {"name": "llama.cpp", "version": "1.3.0", "commit": "fed987"},
            "fingerprint": {"cpu": "Grace"},
            "metrics": {"output_throughput": 110.0},
            "answers": {},
            "injected": [],
            "synthetic": False,
        }
        folder.record("measurement", line)
        folder.record(
            "verdict", {"test": probe, **outcome(verdict=verdict).as_record(), "probe": probe}
        )
    folder.close()
    return folder.path


class TestList:
    def test_one_line_per_baseline_of_all_stores(
        self, stores: dict[str, Path], capsys: Capture
    ) -> None:
        assert main(["baseline", "list"]) == 0
        header, *lines = capsys.readouterr().out.splitlines()
        assert header.split("  ")[0] == "store"
        assert [line.split()[0] for line in lines] == ["suite", "candidate", "own"]
        assert "c1 (2), c4 (1)" in lines[0]
        assert lines[0].endswith("2026-11-05 by Ada")
        assert lines[2].endswith("2026-11-05 by self")
        assert len({line.index("small-serve") for line in lines}) == 1

    def test_as_json(self, stores: dict[str, Path], capsys: Capture) -> None:
        assert main(["baseline", "list", "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert {one["store"]: one["file"] for one in found} == {
            name: str(path) for name, path in stores.items()
        }
        assert found[0] == {
            "store": "suite",
            "file": str(stores["suite"]),
            "hardware": "cpu",
            "scenario": "small-serve",
            "engine": "llama.cpp",
            "version": "1.2.0",
            "commit": "abc123",
            "accepted_by": "Ada",
            "accepted_at": "2026-11-05T12:00:00+00:00",
            "reason": "release 1.2 as it was shipped",
            "probes": {"c1": 2, "c4": 1},
        }

    def test_of_nothing_says_how_to_get_one(self, suite_root: Path, capsys: Capture) -> None:
        assert main(["baseline", "list"]) == 0
        assert capsys.readouterr().out.startswith("no baselines yet; ")
        assert main(["baseline", "list", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == []

    def test_a_broken_file_is_an_error(self, stores: dict[str, Path], capsys: Capture) -> None:
        stores["own"].write_text("")
        assert main(["baseline", "list"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"perfgate: {stores['own']}:1: baseline is not JSON")


class TestShow:
    def test_values_with_their_unit_one_per_start(
        self, stores: dict[str, Path], capsys: Capture
    ) -> None:
        assert main(["baseline", "show", str(stores["suite"])]) == 0
        out = capsys.readouterr().out
        assert "accepted_by: Ada\n" in out
        c1 = out.partition("\nc1\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split("  ")[0] for line in c1] == ["metric", "output_throughput"]
        assert c1[1].split(None, 2) == ["output_throughput", "tokens/s", "100, 101"]

    def test_as_json(self, stores: dict[str, Path], capsys: Capture) -> None:
        assert main(["baseline", "show", str(stores["suite"]), "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["commit"] == "abc123"
        assert found["values"] == {
            "c1": {"output_throughput": [100.0, 101.0]},
            "c4": {"output_throughput": [9.0]},
        }

    @pytest.mark.parametrize("name", ["none.json", "."])
    def test_no_such_file(self, suite_root: Path, name: str, capsys: Capture) -> None:
        assert main(["baseline", "show", str(suite_root / name)]) == 2
        assert capsys.readouterr().err.startswith(f"perfgate: {suite_root / name}: ")


class TestRecordAndPromote:
    def test_the_way_of_a_person(self, run: Path, capsys: Capture) -> None:
        assert main(["baseline", "record", str(run)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "left out: small-serve-c4: its verdict is REGRESSION"
        candidate = lines[1].removeprefix("candidate: ")
        assert lines[2].startswith("look at it with `perfgate baseline show`")
        assert read(Path(candidate)).accepted_by == "nobody yet"

        words = ["baseline", "promote", candidate, "--by", "Ada", "--reason", "faster kernels"]
        assert main(words) == 0
        changes, path, advice = capsys.readouterr().out.splitlines()
        assert changes == "c1 output_throughput: new: 110"
        assert advice == "commit this file for it to count elsewhere"
        accepted = read(Path(path.removeprefix("baseline: ")))
        assert (accepted.accepted_by, accepted.reason) == ("Ada", "faster kernels")
        assert suite_store().list() == [accepted.file]

    def test_as_json(self, run: Path, capsys: Capture) -> None:
        assert main(["baseline", "record", str(run), "--format", "json"]) == 0
        recorded = json.loads(capsys.readouterr().out)
        assert recorded["left_out"] == ["small-serve-c4: its verdict is REGRESSION"]
        (candidate,) = recorded["candidates"]
        words = ["baseline", "promote", candidate, "--by", "Ada", "--reason", "x"]
        assert main([*words, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "baseline": str(suite_store().path("cpu", "small-serve", "fed987")),
            "changes": ["c1 output_throughput: new: 110"],
        }

    def test_no_run(self, suite_root: Path, capsys: Capture) -> None:
        assert main(["baseline", "record", str(suite_root)]) == 2
        assert "run.json: no such run" in capsys.readouterr().err

    def test_no_person(self, stores: dict[str, Path], capsys: Capture) -> None:
        words = ["baseline", "promote", str(stores["candidate"]), "--by", " ", "--reason", "x"]
        assert main(words) == 2
        assert capsys.readouterr().err == "perfgate: --by: must not be empty\n"
        assert suite_store().list() == [stores["suite"]]
