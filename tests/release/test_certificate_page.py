"""The certificate's page: the same content, one file, no script; its look is tests/browser's."""

import re
from html import unescape

from made_checks import check, checked, hostile, packed, usual, with_every_finding
from run_reports import HOSTILE
from tables import each

from perfgate.release import certificate_content as content
from perfgate.release.certificate_page import certificate_page
from perfgate.release.check_result import Finding


def texts(page: str) -> str:
    """What a person reads, without style and markup."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", body)).split())


def test_it_says_what_the_markdown_says() -> None:
    made = usual()
    told = texts(certificate_page(made, packed()))
    assert "◆ WARNED tensorrt-llm 1.3.0 for B200" in told
    for words in (
        content.meaning(made),
        content.counts(made),
        content.rates(made),
        content.made_by(),
        content.moment(made),
        content.VERIFY,
        *(" ".join(one.split()) for _, one in content.asked(made)),
        *content.requirements(made),
        *content.run_lines(made),
        *(one.sha256 for one in content.roots(packed())),
        *(group.why for group in content.waivers(made) + content.not_covered(made)),
    ):
        assert words in told, words
    for line in content.scenario_lines(made):
        assert (
            f"{line.sign.shape} {line.finding} {line.scenario} {line.tests} {line.metric}" in told
        )


def test_nothing_checked_is_stamped() -> None:
    page = certificate_page(check(result="PASSED"))
    assert '<p class="stamp" aria-hidden="true"><span data-word="FAILED"></span></p>' in page
    assert "<title>FAILED: " in page
    assert "PASSED" not in texts(page)


def test_synthetic_is_stamped_and_in_the_title() -> None:
    page = certificate_page(check(checked(0), checked(1, Finding.SYNTHETIC)))
    assert all(f'<span data-word="{one}"></span>' in page for one in ("SYNTHETIC", "FAILED"))
    assert "<title>SYNTHETIC FAILED: " in page
    assert 'class="stamp"' not in certificate_page(usual())


def test_one_file_without_a_script() -> None:
    page = certificate_page(usual(), packed())
    assert "<script" not in page
    assert not re.search(r"\ssrc=|@import|url\(", page)
    assert set(re.findall(r'href="([^"]*)"', page)) == {"data:,"}
    assert "default-src 'none'" in page


@each("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_texts(text: str) -> None:
    page = certificate_page(hostile([text] * len(Finding)), packed())
    own = certificate_page(with_every_finding(), packed())

    def elements(of: str) -> set[str]:
        return set(re.findall(r"<([a-z][a-z0-9]*)", of))

    assert elements(page) <= elements(own) | {"li", "ul"}
    assert not re.search(r"<[^>]*\son[a-z]+=", page)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b\ud800-\udfff]", page)
    assert len(page) < 60_000
