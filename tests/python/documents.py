"""Treats pages as programs: parses, checks and runs their blocks, compares and rewrites outputs.

A block of a page is a fence with one of these languages:

`console`  lines that begin with `$ ` are commands of a shell, the lines below each are its output
`python`   a program; a block `text` directly below it is its output
`toml`     a file that later blocks use, if its first line is `# NAME.toml`, else a part of a testbed file
`sh`       commands whose output is not shown: they are checked and not run
`json`     a format

Blocks run in the order of the page, in a new folder with the gallery. A line `...` of an output stands for
any lines, or none. Two comments may mark a block, each with a reason. `<!-- make prove: REASON -->` marks a
block that needs privileges or time. With `<!-- figures vary: REASON -->` rows and units are compared, but not
figures.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "gallery").glob("*/README.md")),
]
PROVE, VARY = "make prove", "figures vary"
LANGUAGES = ("console", "python", "text", "toml", "sh", "json")
GUIDES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
"""Pages whose inline code is checked; their blocks are of other languages."""
ELISION = "..."
WIDTH = 120
"""Outputs except tables are wrapped at this width, as on a terminal."""

PROGRAMS = {"engpass", ".venv/bin/engpass", "make", "ip", "for", "done", "printf", "sleep", "tshark"}
"""First words of lines of `sh` blocks: a line with another first word counts as output."""

_FENCE = re.compile(r"( *)(?:```|~~~)(.*)$")
_MARK = re.compile(r"<!-- *([^:]*?)(?:: *(.*?))? *-->$")
# `make pages` writes the tables of the pages between these comments.
_PLACES = ("claims", "curves", "end")


@dataclass
class Step:
    """A command or program, and its output as the page shows it."""

    command: str
    at: int = 0
    """Index of the first line of the output in the page."""
    shown: list[str] | None = None
    """The output; `None` if the page shows none."""


@dataclass
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """Line number of the opening fence, from 1."""
    language: str
    indent: str
    marks: dict[str, str]
    """Marks above the block, with their reasons."""
    lines: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    """The commands of a `console`, `sh` or `python` block."""

    @property
    def where(self) -> str:
        name = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page.name
        return f"{name}:{self.line}"

    @property
    def file(self) -> str | None:
        """Name of the file that a `toml` block is to be saved as."""
        first = self.lines[0] if self.lines and self.language == "toml" else ""
        named = re.fullmatch(r"# (\S+\.toml)", first)
        return named[1] if named else None


@dataclass
class Page:
    """The blocks of a page, and its faults: blocks and marks that the tests would skip."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def parse(path: Path) -> Page:
    """Read a page."""
    page = Page(path)
    marks: dict[str, str] = {}
    program: Block | None = None  # the `python` block directly above
    block: Block | None = None
    before = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence, mark = _FENCE.match(line), _MARK.match(line)
        if block is not None:
            if fence and not fence[2]:
                _close(page, block, program)
                program = block if block.language == "python" else None
                block = None
            else:
                block.lines.append(line.removeprefix(block.indent))
        elif fence:
            block = Block(path, number, fence[2], fence[1], marks)
            marks = {}
        elif mark and mark[1].split(" ")[0] not in _PLACES:
            marks[mark[1]] = mark[2] or ""
        elif line.strip():
            program = None
            if marks:
                page.faults.append(f"{path.name}:{number}: a mark must stand directly above its block")
                marks = {}
            if line.startswith("    ") and not before.strip():
                page.faults.append(f"{path.name}:{number}: an indented block: write a fence with a language")
        before = line
    if block is not None:
        page.faults.append(f"{block.where}: the fence is not closed")
    return page


def _close(page: Page, block: Block, program: Block | None) -> None:
    """Add a complete block to its page; `program` is the `python` block directly above, if there is one."""
    page.blocks.append(block)
    if block.language == "console":
        block.steps = _steps(block)
    elif block.language in ("python", "sh"):
        block.steps = [Step("\n".join(block.lines))]
    elif block.language == "text" and program is not None:
        program.steps[0].at, program.steps[0].shown = block.line, block.lines
    found = [*_faults_of_content(block, program), *_faults_of_marks(block)]
    page.faults += [f"{block.where}: {fault}" for fault in found]


def _faults_of_content(block: Block, program: Block | None) -> Iterator[str]:
    """Find the reasons why a block would be neither run nor checked."""
    language = block.language
    if language not in LANGUAGES:
        yield f"unknown language `{language}`: write one of {', '.join(LANGUAGES)}"
    if language == "text" and program is None:
        yield "an output below no program: write commands and outputs as `console`"
    if language == "console" and not "".join(block.lines[:1]).startswith("$ "):
        yield "a `console` block must begin with a command: `$ COMMAND`"
    if language in ("toml", "json") and any(re.match(r"(\$ )?(\S*/)?engpass ", line) for line in block.lines):
        yield f"a command in a block of `{language}`: write it as `console`"
    if language == "sh":
        for line in block.steps[0].command.replace("\\\n", " ").splitlines():
            words = [word for word in line.split() if not re.match(r"\w+=", word)]
            if words and words[0] not in PROGRAMS:
                yield f"an output in a block of `sh`, or a program that is not in `PROGRAMS`: `{line}`"


def _faults_of_marks(block: Block) -> Iterator[str]:
    """Find marks that are unknown, that lack a reason, or that stand at a block which is not run."""
    for mark, reason in block.marks.items():
        if mark not in (PROVE, VARY):
            yield f"unknown mark `{mark}`: write `{PROVE}` or `{VARY}`"
        elif not reason:
            yield f"the mark `{mark}` has no reason: write `{mark}: REASON`"
        elif block.language not in ("console", "python"):
            yield f"the mark `{mark}` on a block that is not run"


def _steps(block: Block) -> list[Step]:
    """The commands of a `console` block with their outputs."""
    steps: list[Step] = []
    continued = False
    for number, line in enumerate(block.lines, block.line + 1):
        if continued:
            steps[-1].command += "\n" + line
        elif line.startswith("$ "):
            steps.append(Step(line[2:]))
        elif steps:
            steps[-1].shown = [*(steps[-1].shown or []), line]
            continue
        else:
            continue
        steps[-1].at, steps[-1].shown = number, []
        continued = line.endswith("\\")
    return steps


# Running


@dataclass
class Done:
    """How a step ended."""

    output: list[str]
    code: int


class Folder:
    """The folder of a page: like a checkout it has the gallery and the virtual environment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ids: dict[str, str] = {}
        (path / "gallery").symlink_to(ROOT / "gallery")
        (path / ".venv").symlink_to(sys.prefix)

    def run(self, block: Block, timeout: float) -> list[Done]:
        """Run the steps of a block, up to the first that fails."""
        if block.language == "python":
            return self._start([sys.executable, "-c", block.steps[0].command], timeout)
        script = ["exec 2>&1"]
        for step in block.steps:
            script += [
                step.command,
                r"status=$?; printf '\n\036%d\n' $status; [ $status = 0 ] || exit $status",
            ]
        return self._start(["bash", "-o", "pipefail", "-c", "\n".join(script)], timeout)

    def _start(self, command: Sequence[str], timeout: float) -> list[Done]:
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
        path = f"{Path(sys.prefix) / 'bin'}:{kept.get('PATH', '')}"
        # A file, not a pipe: a program in the background may hold it open.
        output = self.path / ".output"
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                cwd=self.path,
                env={**kept, "PATH": path, "PYTHONWARNINGS": "error", "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout)
            finally:
                # The block has a session of its own, so this ends its background programs, too.
                if process.poll() is None or _has_members(process.pid):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        text = self._same_anywhere(output.read_text(encoding="utf-8", errors="replace"), command[-1])
        output.unlink()
        *ended, rest = re.split(r"\n\036(\d+)\n", text)
        done = [Done(displayed(ended[i]), int(ended[i + 1])) for i in range(0, len(ended), 2)]
        if command[0] != "bash":
            done = [Done(displayed(rest), code)]
        elif code != 0 and all(one.code == 0 for one in done):
            done.append(Done(displayed(rest), code))
        return done

    def _same_anywhere(self, text: str, script: str) -> str:
        """Drop the folder's name and lines of progress; derive ids of runs and testbeds from the script."""
        text = re.sub(r"^[\d,]+ of [\d,]+ points.* s left\n", "", text, flags=re.MULTILINE)
        ids = re.findall(r"\b(?:(?:run|search|path) [0-9a-f]{10}|up as [0-9a-f]{6})\b", text)
        for number, found in enumerate(ids):
            name = found.split()[-1]
            made = hashlib.sha1(f"{script} {number}".encode()).hexdigest()
            self._ids.setdefault(name, made[: len(name)])
        for found, shown in self._ids.items():
            text = text.replace(found, shown)
        return text.replace(f"{self.path}/", "")


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def displayed(output: str) -> list[str]:
    """The lines of an output as a page shows them."""
    lines: list[str] = []
    for line in output.removesuffix("\n").split("\n"):
        if len(line) > WIDTH and not re.search("[━─│┃]", line):
            lines += textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        else:
            lines.append(line.rstrip())
    return [] if lines == [""] else lines


def missing_programs(block: Block) -> list[str]:
    """Programs other than Engpass that a `console` block calls and that this machine lacks."""
    if block.language != "console":
        return []
    first = {step.command.split()[0] for step in block.steps}
    return sorted(name for name in first if not shutil.which(name) and not re.search("engpass", name))


# Comparing


def _plain(line: str, *, vary: bool) -> str:
    """Normalise a line for comparison: with `vary`, without figures, prefixes of units and widths."""
    line = line.rstrip()
    if vary:
        line = re.sub(r"(?:< ?|[+-])?\d+(?:[.,]\d+)*\??", "#", line)
        line = re.sub(r"# [kKMGTmuµn](?=s\b|bit|B)", "# ", line)
        line = re.sub(r"([━─┄])\1*", r"\1", re.sub(r" +", " ", line))
    return line


def _segments(shown: Sequence[str]) -> list[list[str]]:
    """The parts of a shown output between elisions; the first and last are empty if an elision is there."""
    segments: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == ELISION:
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def matches(shown: Sequence[str], real: Sequence[str], *, vary: bool = False) -> bool:
    """Whether an output is as shown: `...` stands for any lines."""
    have = [_plain(line, vary=vary) for line in real]
    segments = [[_plain(line, vary=vary) for line in segment] for segment in _segments(shown)]
    if len(segments) == 1:
        return segments[0] == have
    first, *middle, last = segments
    if len(first) + len(last) > len(have) or have[: len(first)] != first:
        return False
    end = len(have) - len(last)
    if have[end:] != last:
        return False
    at = len(first)
    for segment in middle:
        while have[at : at + len(segment)] != segment:
            at += 1
            if at + len(segment) > end:
                return False
        at += len(segment)
    return at <= end


def renewed(shown: Sequence[str], real: Sequence[str], *, vary: bool = False) -> list[str]:
    """Return the output as the page should show it: matching lines stay, and elided parts stay elided."""
    if matches(shown, real, vary=vary):
        return list(shown)
    segments = _segments(shown)
    if len(segments) == 1:
        return list(real)
    places = _align([line for segment in segments for line in segment], real)
    lines: list[str] = []
    for i, segment in enumerate(segments):
        found = [place for place in places[: len(segment)] if place is not None]
        places = places[len(segment) :]
        first, last = i == 0, i == len(segments) - 1
        if found:
            begin = 0 if first else found[0]
            end = len(real) if last else found[-1] + 1
            lines += real[begin:end]
        # Two elisions around a missing segment become one.
        if not last and lines[-1:] != [ELISION]:
            lines.append(ELISION)
    return lines


def _align(shown: Sequence[str], real: Sequence[str]) -> list[int | None]:
    """For each shown line the index of the real line that corresponds to it, or `None`; in order."""
    left = [_plain(line, vary=True) for line in shown]
    right = [_plain(line, vary=True) for line in real]

    def likeness(i: int, j: int) -> float:
        if not re.search(r"\w", shown[i]):
            # Blank lines and rules of tables are frequent: their neighbours decide where they belong.
            return 0.01 if left[i] == right[j] != "" else 0.0
        if shown[i].rstrip() == real[j].rstrip():
            return 2.0
        ratio = 1.5 if left[i] == right[j] else SequenceMatcher(None, left[i], right[j]).ratio()
        return ratio if ratio >= 0.6 else 0.0

    like = [[likeness(i, j) for j in range(len(right))] for i in range(len(left))]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + like[i][j])
    places: list[int | None] = []
    j = 0
    for i in range(len(left)):
        while j < len(right) and best[i][j] == best[i][j + 1]:
            j += 1
        if j < len(right) and like[i][j] > 0 and best[i][j] == best[i + 1][j + 1] + like[i][j]:
            places.append(j)
            j += 1
        else:
            places.append(None)
    return places


def rewrite(page: Page, outputs: Sequence[tuple[Block, Step, list[str]]]) -> None:
    """Write new outputs into a page."""
    lines = page.path.read_text(encoding="utf-8").splitlines()
    for block, step, output in sorted(outputs, key=lambda one: one[1].at, reverse=True):
        assert step.shown is not None
        lines[step.at : step.at + len(step.shown)] = [f"{block.indent}{line}".rstrip() for line in output]
    page.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
