"""The hooks of the site: what docs/index.md becomes, and links that hold on both sides."""

import pytest
from mkdocs.exceptions import PluginError
from tables import each

from ci.maintenance.docs_hooks import ROOT, github_anchor, navigation, purpose, rewritten

INDEX = """# Documents

## How-to: do one thing

On your machines:

- [Slurm](how-to/slurm.md), [Docker](how-to/docker.md): elsewhere.

For your gate:

- [The `waiver`](how-to/waivers.md): see [Docker](how-to/docker.md).

## Explanation: understand it

- [Detection](explanation/detection.md): a study.
- Decisions: [1. one](explanation/decisions/0001.md).
"""


def test_the_index_is_the_navigation() -> None:
    home, how_to, explanation = navigation(INDEX)
    machines = [{"Slurm": "how-to/slurm.md"}, {"Docker": "how-to/docker.md"}]
    gate = [{"The waiver": "how-to/waivers.md"}]
    assert home == {"Home": "index.md"}
    assert how_to == {"How-to": [{"On your machines": machines}, {"For your gate": gate}]}
    detection = {"Detection": "explanation/detection.md"}
    decisions = {"Decisions": [{"1. one": "explanation/decisions/0001.md"}]}
    assert explanation == {"Explanation": [detection, decisions]}


@each(
    "page, link, of_the_site",
    [
        ("docs/index.md", "../README.md", "repository/README.md"),
        ("docs/how-to/slurm.md", "../../site.example.yaml", "../repository/site.example.yaml.md"),
        ("docs/how-to/slurm.md", "../../README.md#on-gpus", "../repository/README.md#on-gpus"),
        ("docs/how-to/slurm.md", "../../no-such-file.md", "../../no-such-file.md"),
        ("docs/how-to/slurm.md", "https://example.com/a", "https://example.com/a"),
        ("docs/how-to/slurm.md", "#below", "#below"),
        ("README.md", "docs/how-to/slurm.md#a", "../how-to/slurm.md#a"),
        ("ci/slurm/README.md", "../../README.md", "../../README.md"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site(page: str, link: str, of_the_site: str) -> None:
    assert rewritten(f"a [b]({link}) c", ROOT / page) == f"a [b]({of_the_site}) c"


def test_code_is_left_as_it_is() -> None:
    block = "```text\n[a](../README.md)\n```"
    assert rewritten(f"[a](../README.md)\n\n{block}\n", ROOT / "docs" / "index.md") == (
        f"[a](repository/README.md)\n\n{block}\n"
    )


def test_an_anchor_is_that_of_github() -> None:
    assert github_anchor("--inject, and what it is …") == "--inject-and-what-it-is-"


@each("page", ["# A\n\n## B\n", "# A\n\n- list\n", "# A\n\n```\ncode\n```\n", ""])
def test_a_page_that_does_not_begin_with_its_purpose_is_refused(page: str) -> None:
    assert purpose("# A\n\nFor `users` of\n[b](b.md).\n\nMore.\n", "a.md") == "For users of b."
    with pytest.raises(PluginError, match=r"a\.md: no sentence below its title"):
        purpose(page, "a.md")
