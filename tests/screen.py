"""A screen, for tests: what a terminal shows after the text and the VT100 sequences it was sent.

As ECMA-48 and the VT100 manual have them: save and restore the cursor, scrolling region, index,
cursor up and to a place, erase a line. Another sequence is an error.
"""

import re

_SEQUENCE = re.compile(r"\x1b(?:(?P<one>[78D])|\[(?P<numbers>[\d;]*)(?P<letter>[A-Za-z]))")


class Screen:
    """The cells of a terminal.

    Attributes:
        lines: what each line shows.
        scrolled: lines that have left at the top.
        region: the scrolling region, first and last line, from 0.
    """

    def __init__(self, height: int = 24, width: int = 80) -> None:
        self.height, self.width = height, width
        self.lines = [""] * height
        self.scrolled: list[str] = []
        self.region = (0, height - 1)
        self.row = self.column = 0
        self._saved = (0, 0)

    def feed(self, text: str) -> None:
        """Show text, with sequences in it."""
        place = 0
        while place < len(text):
            found = _SEQUENCE.match(text, place)
            if found is None:
                self._put(text[place])
                place += 1
                continue
            place = found.end()
            self._obey(found["one"] or found["letter"], found["numbers"] or "")

    def text(self) -> str:
        """All lines, those that are gone first, without blank ones."""
        return "\n".join(line for line in [*self.scrolled, *self.lines] if line)

    def _put(self, one: str) -> None:
        assert one != "\x1b", "a sequence that the screen does not know"
        if one == "\n":
            self.column = 0
            self._index()
        elif one == "\r":
            self.column = 0
        else:
            assert self.column < self.width, "a line that would wrap"
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + one + line[self.column + 1 :]
            self.column += 1

    def _index(self) -> None:
        top, bottom = self.region
        if self.row == bottom:
            gone = self.lines.pop(top)
            self.lines.insert(bottom, "")
            if top == 0:
                self.scrolled.append(gone)
        elif self.row < self.height - 1:
            self.row += 1

    def _obey(self, letter: str, numbers: str) -> None:
        given = [int(one) if one else 0 for one in numbers.split(";")]
        if letter == "7":
            self._saved = (self.row, self.column)
        elif letter == "8":
            self.row, self.column = self._saved
        elif letter == "D":
            self._index()
        elif letter == "A":
            self.row = max(self.region[0], self.row - given[0])
        elif letter == "H":
            self.row, self.column = given[0] - 1, given[1] - 1
            assert 0 <= self.row < self.height
        elif letter == "r":
            self.region = (given[0] - 1, given[1] - 1) if numbers else (0, self.height - 1)
            self.row = self.column = 0
        elif letter == "K" and numbers == "2":
            self.lines[self.row] = ""
        else:
            raise AssertionError(f"a sequence that the screen does not know: {numbers}{letter}")
