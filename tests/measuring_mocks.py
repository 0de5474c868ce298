"""A mock engine as an installed package: its numbers count as measured; a rehearsal's never do."""

from pathlib import Path

STANDINS = Path(__file__).parent / "standins"
EXPRESSION = "standin"
SCENARIO = "standin-serve"


def install(folder: Path) -> dict[str, str]:
    """Make the package, for perfgate to find by its entry point; the environment that has it."""
    facts = folder / "packages" / "standin-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: standin\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[perfgate.plugins]\nstandin = standin\n")
    return {
        "PYTHONPATH": f"{facts.parent}:{STANDINS}",
        "PERFGATE_STANDIN_COUNTER": str(folder / "starts"),
    }


def add_scenario(repository: Path) -> None:
    """Its scenario, compared with a stored baseline; one start a session."""
    text = (STANDINS / "standin.yaml").read_text()
    for was, now in (
        ("reference: self", "reference: stored"),
        ("reference_starts: 4", "reference_starts: 1"),
        ("noise: measured", "bands: {output_throughput: 0.25}"),
    ):
        assert was in text
        text = text.replace(was, now)
    (repository / "scenarios" / "standin.yaml").write_text(text)
