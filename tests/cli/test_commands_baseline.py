import json
from collections.abc import Callable
from pathlib import Path

import pytest
from building import baseline, entry, of_commit, outcome, with_answers
from command_line import Perfgate
from plain_records import fields_of, record
from sides_made import measurement
from tables import each

from perfgate.baselines import candidate_store, own_store, read, suite_store
from perfgate.baselines.noise_history import read as read_noise
from perfgate.cli.main import main
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.runs.run_folder import RunFolder, now

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def stores(suite_root: Path) -> dict[str, Path]:
    """One baseline in each store."""
    return {
        "suite": suite_store().save(
            baseline(
                entries={"c1": entry(100.0, 101.0), "c4": entry(9.0)},
                change="first",
                verdicts={"c1": "NO_BASELINE"},
            )
        ),
        "candidate": candidate_store().save(of_commit("next", entries={"c1": entry(120.0)})),
        "own": own_store().save(of_commit("mine", accepted_by="self")),
    }


@pytest.fixture
def make_run(suite_root: Path) -> Callable[..., Path]:
    """Makes runs of two scenarios, of which the second came to no verdict."""

    def make(name: str, first: Verdict) -> Path:
        folder = RunFolder.create(suite_root / "runs" / name, {"synthetic": False})
        ends = (("small-serve", "c1", first), ("noisy-serve", "c4", Verdict.INCONCLUSIVE))
        for scenario, probe, verdict in ends:
            told = {"probe": probe, "scenario": scenario, "fingerprint": {"cpu": "Grace"}}
            told |= {"started": now(), "disturbed": [], "seconds": 20.5}
            folder.record(record("measurement", measurement({"output_throughput": 110.0}, **told)))
            named = {"test": probe, "name": f"{scenario}-{probe}"}
            named |= {"scenario": scenario, "probe": probe}
            end = fields_of(outcome(verdict=verdict, judgements=()))
            folder.record(record("verdict", {**end, **named}))
        folder.close()
        return folder.path

    return make


@pytest.fixture
def run(make_run: Callable[..., Path]) -> Path:
    return make_run("one", Verdict.PASS)


class TestListAndShow:
    def test_of_all_stores_one_line_each(self, stores: dict[str, Path], perfgate: Perfgate) -> None:
        header, *lines = perfgate.printed("baseline list").splitlines()
        assert header.split("  ")[0] == "store"
        assert [line.split()[0] for line in lines] == ["suite", "candidate", "own"]
        assert "c1 (2), c4 (1)" in lines[0]
        assert lines[0].endswith("2026-11-05 by Ada")
        assert lines[2].endswith("2026-11-05 by self")
        assert len({line.index("small-serve") for line in lines}) == 1
        found = perfgate.plain("baseline list")
        assert {one["store"]: Path(one["file"]) for one in found} == stores
        assert set(found[0]) == {
            *("store", "file", "hardware", "scenario", "engine", "version", "commit", "source"),
            *("accepted_by", "accepted_at", "reason", "change", "regression", "retired"),
            *("synthetic", "verdicts", "probes"),
        }
        assert (found[0]["accepted_by"], found[0]["change"]) == ("Ada", "first")
        assert found[0]["probes"] == {"c1": 2, "c4": 1}
        stores["own"].write_text("")
        told = perfgate.refused("baseline list")
        assert told.startswith(f"perfgate: {stores['own']}:1: baseline is not JSON")

    def test_of_nothing(self, suite_root: Path, perfgate: Perfgate) -> None:
        assert perfgate.printed("baseline list").startswith("no baselines yet; ")
        assert perfgate.plain("baseline list") == []
        for name in ("none.json", "."):
            told = perfgate.refused(f"baseline show {suite_root / name}")
            assert told.startswith(f"perfgate: {suite_root / name}: ")

    def test_values_with_their_unit_one_per_start(
        self, stores: dict[str, Path], perfgate: Perfgate
    ) -> None:
        out = perfgate.printed(f"baseline show {stores['suite']}")
        assert "accepted_by: Ada\n" in out
        assert "change: first\nverdicts: c1 NO_BASELINE\nprobes: c1 2, c4 1\n" in out
        c1 = out.partition("\nc1\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split("  ")[0] for line in c1[:2]] == ["metric", "output_throughput"]
        assert c1[2] == "facts: content 0123456789abcdef, cpu Grace"
        assert c1[1].split(None, 2) == ["output_throughput", "tokens/s", "100, 101"]

    def test_how_the_build_was_started(self, suite_root: Path, perfgate: Perfgate) -> None:
        image = {"image": "registry.example/trtllm:1.2.0", "digest": "sha256:0123"}
        path = suite_store().save(baseline(source=BuildSource(**image)))
        lines = perfgate.printed(f"baseline show {path}").splitlines()
        assert "source: image registry.example/trtllm:1.2.0, digest sha256:0123" in lines
        told = perfgate.plain(f"baseline show {path}")
        assert told["source"] == image
        assert told["values"] == {"c1": {"output_throughput": [100.0, 101.0]}}


class TestRecordAndPromote:
    def test_the_way_of_a_person(self, run: Path, perfgate: Perfgate) -> None:
        lines = perfgate.printed(f"baseline record {run}").splitlines()
        assert lines[0] == "left out: noisy-serve: the verdict of c4 is INCONCLUSIVE"
        noise = Path(lines[1].removeprefix("noise: "))
        assert {one.scenario for one in read_noise(noise).series} == {"small-serve", "noisy-serve"}
        candidate = lines[2].removeprefix("candidate: ")
        assert lines[3] == "baseline of 1 session; 3 are asked for"
        assert lines[4].startswith("look at it with `perfgate baseline show`")
        assert read(Path(candidate)).accepted_by == "nobody yet"

        words = ["baseline", "promote", candidate, "--by", "Ada", "--reason", "faster kernels"]
        *told, path, advice = perfgate.printed(words).splitlines()
        assert told[0] == "compared with: nothing, there is no baseline yet"
        assert told[2].split() == ["c1", "output_throughput", "tokens/s", "-", "110", "-", "-"]
        assert told[3] == "change: first (nothing comparable came before; a new level starts)"
        assert advice == "commit this file so that it is used elsewhere too"
        accepted = read(Path(path.removeprefix("baseline: ")))
        assert (accepted.accepted_by, accepted.reason) == ("Ada", "faster kernels")
        assert suite_store().list() == [accepted.file]

    def test_names_the_questions_that_go_with_it(
        self, suite_root: Path, perfgate: Perfgate
    ) -> None:
        entries = {"sums": with_answers({"q1": True, "q2": False})}
        path = candidate_store().save(baseline(accepted_by="nobody yet", entries=entries))
        *_, asked, written, advice = perfgate.printed(
            f"baseline promote {path} --by Ada --reason x"
        ).splitlines()
        (file,) = (suite_store().folder / "questions" / "sums").iterdir()
        assert asked == f"questions: {file}"
        assert written.startswith("baseline: ")
        assert advice == "commit these files so that they are used elsewhere too"

    def test_of_a_run_that_proves_nothing_the_noise_is_kept(
        self, make_run: Callable[..., Path], capsys: Capture
    ) -> None:
        undecided = make_run("undecided", Verdict.INCONCLUSIVE)
        assert main(["baseline", "record", str(undecided)]) == 2
        told = capsys.readouterr()
        assert "nothing in this run can become a baseline" in told.err
        (line,) = told.out.splitlines()
        assert read_noise(Path(line.removeprefix("noise: "))).run == "undecided"

    def test_as_json(self, run: Path, perfgate: Perfgate) -> None:
        recorded = perfgate.plain(f"baseline record {run}")
        (candidate,) = recorded["candidates"]
        words = ["baseline", "promote", candidate, "--by", "Ada", "--reason", "x"]
        done = perfgate.plain([*words])
        assert done["baseline"] == str(suite_store().path("cpu", "small-serve", "fed987"))
        assert recorded["sessions"] == {candidate: 1}
        assert (done["written"], done["change"]) == (True, "first")
        ((moved,),) = [one["metrics"] for one in done["changes"]]
        assert (moved["metric"], moved["before"], moved["after"]) == (
            *("output_throughput", None, 110.0),
        )

    @each(
        "words, said",
        [
            ("--reason x", "--by: must not be empty"),
            ("--by Ada", "--reason: must not be empty"),
            ("--by Ada --reason x --scenario small-serve", "--scenario: has no meaning without"),
            ("file --by Ada --reason x", "more than one candidate"),
            ("--branch new --dry-run", "--dry-run: has no meaning with"),
            ("--branch new --rehearsal", "--rehearsal: has no meaning with"),
            ("--by Ada --reason x --engine-repo /nowhere", "not a git clone that git can read"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, stores: dict[str, Path], perfgate: Perfgate, words: str, said: str
    ) -> None:
        assert said in perfgate.refused(f"baseline promote {stores['candidate']} {words}")
        assert suite_store().list() == [stores["suite"]]

    def test_a_dry_run_writes_nothing(self, stores: dict[str, Path], perfgate: Perfgate) -> None:
        words = f"baseline promote {stores['candidate']} --by Ada --reason x --dry-run"
        file = suite_store().path("cpu", "small-serve", "next")
        assert perfgate.printed(words).splitlines()[-1] == f"would write: {file}"
        assert perfgate.plain(words)["written"] is False
        assert not file.exists()

    def test_a_regression_is_refused_until_it_is_accepted(
        self, stores: dict[str, Path], perfgate: Perfgate
    ) -> None:
        worse = of_commit("worse", entries={"c1": entry(80.0)}, verdicts={"c1": "REGRESSION"})
        words = f"baseline promote {candidate_store().save(worse)} --by Ada --reason x"
        assert "c1: its run ended in REGRESSION" in perfgate.refused(words)
        assert suite_store().list() == [stores["suite"]]
        told = perfgate.printed(f"{words} --accept-regression safer-sampling")
        assert "change: regression (a loss is accepted; a new level starts)" in told


class TestRetireAndAnchor:
    def test_retire(self, stores: dict[str, Path], perfgate: Perfgate) -> None:
        words = [str(stores["suite"]), "--by", "Ada", "--reason", "wrong clocks"]
        assert perfgate.printed(["baseline", "retire", *words]).startswith(
            f"retired: {stores['suite']}\n"
        )
        assert "by Ada: wrong clocks" in perfgate.printed(f"baseline show {stores['suite']}")
        assert "  retired  " in perfgate.printed("baseline list")
        assert "the baseline is retired" in perfgate.refused(["baseline", "retire", *words])

    def test_anchor(self, stores: dict[str, Path], capsys: Capture, perfgate: Perfgate) -> None:
        words = [str(stores["suite"]), "--by", "Ada", "--reason", "the last release"]
        assert main(["baseline", "anchor", *words, "--format", "json"]) == 0
        path = Path(json.loads(capsys.readouterr().out)["anchor"])
        assert json.loads(path.read_text())["commit"] == "abc123"
        assert "the anchor cannot be retired" in perfgate.refused(["baseline", "retire", *words])
        assert "anchor.json" not in perfgate.printed("baseline list")


class TestDiff:
    @pytest.fixture
    def two(self, suite_root: Path) -> tuple[Path, Path]:
        before = of_commit("aaaaaaa", entries={"c1": entry(100.0), "c4": entry(9.0)})
        after = of_commit("bbbbbbb", entries={"c1": entry(90.0), "c4": entry(9.0, cpu="Xeon")})
        return suite_store().save(before), suite_store().save(after)

    def test_two_files(self, two: tuple[Path, Path], perfgate: Perfgate) -> None:
        lines = perfgate.printed(["baseline", "diff", *map(str, two)]).splitlines()
        assert lines[0].startswith("A: llama.cpp 1.2.0, commit aaaaaaa, cpu, small-serve, accepted")
        c1 = next(line for line in lines if line.startswith("c1"))
        assert c1.split()[:6] == ["c1", "output_throughput", "tokens/s", "100", "90", "-10.0"]
        assert lines[-1] == "not comparable: c4 cpu: B Xeon, A Grace"

    def test_two_commits(self, two: tuple[Path, Path], perfgate: Perfgate) -> None:
        plain = perfgate.plain("baseline diff aaaaaaa bbbbbbb")
        assert (plain["before"], plain["after"]) == tuple(map(str, two))
        (moved,) = plain["changes"][0]["metrics"]
        assert moved["change"] == pytest.approx(-0.1)
        assert plain["changes"][1]["differing_facts"] == ["cpu: measured Xeon, baseline Grace"]

    @each("words", [["diff", "aaaaaaa", "bbbbbbb"], ["history", "small-serve"]])
    def test_as_markdown(self, two: object, words: list[str], perfgate: Perfgate) -> None:
        assert "\n|---|---|---|" in perfgate.printed(["baseline", *words, "--format", "markdown"])

    def test_a_commit_of_several_scenarios_needs_to_be_told_which(
        self, two: tuple[Path, Path], perfgate: Perfgate
    ) -> None:
        suite_store().save(of_commit("aaaaaaa", scenario="other"))
        words = ["baseline", "diff", "aaaaaaa", "bbbbbbb"]
        assert "found: cpu/other, cpu/small-serve" in perfgate.refused(words)
        assert main([*words, "--scenario", "small-serve", "--hardware", "cpu"]) == 0
        assert "no baseline of this commit" in perfgate.refused([*words, "--hardware", "8xH200"])
        other = suite_store().path("cpu", "other", "aaaaaaa")
        assert "two scenarios have nothing to compare" in perfgate.refused(
            f"baseline diff {two[0]} {other}"
        )


class TestHistory:
    @pytest.fixture
    def three(self, suite_root: Path) -> None:
        for version, value in (("1.0.0", 100.0), ("1.1.0rc1", 99.0), ("1.1.0rc2", 98.0)):
            build = EngineBuild("llama.cpp", version, f"c{version}")
            suite_store().save(baseline(engine=build, entries={"c1": entry(value)}))

    @pytest.mark.usefixtures("three")
    def test_of_three_builds(self, perfgate: Perfgate) -> None:
        lines = perfgate.printed("baseline history small-serve").splitlines()
        assert lines[0] == "small-serve on cpu, oldest first"
        assert [line.split()[0] for line in lines[3:6]] == ["1.0.0", "1.1.0rc1", "1.1.0rc2"]
        assert lines[3].endswith("anchor")
        changes = [line.split("  ")[-1].strip() for line in lines[-3:]]
        assert changes == ["is it", "-1.0 %", "-2.0 %"]
        (steps,) = perfgate.plain("baseline history small-serve").values()
        assert [step["version"] for step in steps] == ["1.0.0", "1.1.0rc1", "1.1.0rc2"]
        assert [step["anchor"] for step in steps] == [True, False, False]
        (value,) = steps[2]["values"]
        assert value["since_anchor"] == pytest.approx(-0.02)
        assert value["since_before"] == pytest.approx(98 / 99 - 1)

    @pytest.mark.usefixtures("three")
    @each("words", ["other", "small-serve --hardware 8xH200"])
    def test_of_nothing(self, words: str, perfgate: Perfgate) -> None:
        assert "expected: one of small-serve" in perfgate.refused(f"baseline history {words}")
