"""A real headless Chromium for tests of the page: what it shows, asks for, complains about."""

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
REQUIRED = os.environ.get("PERFGATE_REQUIRE_BROWSER") == "1"
PICTURES = os.environ.get("PERFGATE_PICTURES")
PATIENCE_S = 120.0  # how long to wait for what must happen; a crowded machine is slow
PHONE, DESK = (360, 740), (1440, 900)
_AXE = ROOT / ".perfgate" / "browser" / "axe.min.js"
_AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
_HINT = "ci/browser/packages.sh gets it"


def _lacking(what: str) -> None:
    """Skip the test, or fail it where PERFGATE_REQUIRE_BROWSER=1 says that nothing may lack."""
    (pytest.fail if REQUIRED else pytest.skip)(f"{what}; {_HINT}")


@dataclass
class Browser:
    """A browser with one tab."""

    driver: webdriver.Chrome

    def open(self, page: Path, *, size: tuple[int, int] = DESK, dark: bool = False) -> None:
        """Open a file as if on a screen of that size, by somebody who likes it dark or light."""
        self.driver.get_log("performance")  # of what was open before
        self.driver.get_log("browser")
        width, height = size
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # nothing to wait for
        self.cdp("Emulation.setEmulatedMedia", features=[scheme, still])
        self.driver.get(page.as_uri())

    def cdp(self, command: str, **values: Any) -> dict[str, Any]:
        """A command of the Chrome DevTools Protocol."""
        found: dict[str, Any] = self.driver.execute_cdp_cmd(command, values)
        return found

    def run(self, script: str, *values: Any) -> Any:
        """Run a script in the page; `return` gives its value."""
        return self.driver.execute_script(script, *values)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str = "body") -> str:
        """The text of an element, hidden parts too."""
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def until(self, script: str) -> Any:
        """The first true value of a script."""
        return WebDriverWait(self.driver, PATIENCE_S).until(lambda _: self.run(script))

    def complaints(self) -> list[str]:
        """All that the console of the page has said since it was opened."""
        return [f"{one['level']}: {one['message']}" for one in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        events = (
            json.loads(one["message"])["message"] for one in self.driver.get_log("performance")
        )
        return [
            str(one["params"]["request"]["url"])
            for one in events
            if one["method"] == "Network.requestWillBeSent"
        ]

    def barriers(self) -> list[str]:
        """What axe-core finds that is serious or critical, a line each, with the first elements."""
        found = self.driver.execute_async_script(
            f"""{axe()}
            const done = arguments[arguments.length - 1];
            axe.run(document, {{resultTypes: ["violations"]}}).then(
              (told) => done({{rules: told.violations, tested: told.passes.length}}),
              (error) => done({{error: String(error)}}));"""
        )
        assert "error" not in found, found["error"]
        assert found["tested"] > 10, "axe tested next to nothing"
        return [
            f"{one['impact']} {one['id']}: {one['help']}: "
            + "; ".join(
                f"{node['html'][:160]} {node['failureSummary']}" for node in one["nodes"][:3]
            )
            for one in found["rules"]
            if one["impact"] in ("serious", "critical")
        ]

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page, where a person asked for pictures."""
        if PICTURES:
            shot = self.cdp("Page.captureScreenshot", captureBeyondViewport=True)
            _keep_picture(name, base64.b64decode(shot["data"]))

    def printed(self, name: str) -> bytes:
        """The page as a PDF, kept where pictures are."""
        told = self.cdp("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        content = base64.b64decode(told["data"])
        _keep_picture(name, content)
        return content


def _keep_picture(name: str, content: bytes) -> None:
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        (Path(PICTURES) / name).write_bytes(content)


@contextmanager
def browser(*, scripts: bool = True) -> Iterator[Browser]:
    """A browser of its own, without what other sessions left; nothing is left of it.

    Args:
        scripts: whether pages may run any.
    """
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        _lacking("there is no chromium" if program is None else "there is no chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(program)
    for one in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu"):
        options.add_argument(f"--{one}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    if not scripts:
        options.add_experimental_option(
            "prefs", {"profile.managed_default_content_settings.javascript": 2}
        )
    service = webdriver.ChromeService(str(driver))
    started = webdriver.Chrome(options=options, service=service)
    try:
        started.set_script_timeout(PATIENCE_S)
        yield Browser(started)
    finally:
        started.quit()


def axe() -> str:
    """The text of axe-core."""
    if not _AXE.is_file():
        _lacking(f"there is no axe-core in {_AXE.relative_to(ROOT)}")
    content = _AXE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == _AXE_SHA256, "axe.min.js is another one"
    return content.decode()


def draw_all(found: Browser) -> None:
    """Scroll to each chart that can be seen, and wait until it is drawn."""
    found.run(
        """return (async () => {
          await document.fonts.ready;
          const all = [...document.querySelectorAll("figure.chart")];
          for (const one of all.filter((chart) => chart.checkVisibility())) {
            one.scrollIntoView();
            while (!one.querySelector(".drawn svg, .chart-fault"))
              await new Promise((drawn) => setTimeout(drawn, 10));
          }
          scrollTo(0, 0);
        })();"""
    )


def wider_than_screen(found: Browser) -> Sequence[str]:
    """What makes the page as a whole scroll sideways; nothing where it does not."""
    told: list[str] = found.run(
        """const wide = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= wide) return [];
        return [...document.querySelectorAll("body *")]
          .filter((one) => one.getBoundingClientRect().right > wide + 1)
          .map((one) => one.outerHTML.slice(0, 120));"""
    )
    return told
