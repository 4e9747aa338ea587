"""Fail when a source file has more than 500 lines of code.

Tests, generated files, comments and blank lines do not count.

An exception needs a line in docs/why/ with a good reason, and the file's name below.
"""

import subprocess
import sys
from pathlib import Path

LIMIT = 500
EXCEPTIONS: set[str] = set()


def lines_of_code(path: Path) -> int:
    """Lines before the test module that are neither blank nor comments."""
    count = 0
    lines = path.read_text().splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        text = line.strip()
        # `mod tests;` is among the other modules, with code after it.
        if text.startswith("#[cfg(test)]") and following.strip().endswith("{"):
            break
        if text and not text.startswith(("//", "#")):
            count += 1
    return count


def main() -> int:
    """Print files over the limit; 1 if there are any."""
    listing = ["git", "ls-files", "*.rs", "*.py"]
    names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    apart = ("tests/", "/tests/", "/tests.rs", "python/engpass/types/")
    sizes = {
        name: lines_of_code(Path(name))
        for name in names.split()
        if not any(part in name for part in apart) and name not in EXCEPTIONS and Path(name).exists()
    }
    for name, size in sorted(sizes.items()):
        if size > LIMIT:
            print(f"{name}: {size} lines of code, at most {LIMIT}: split it by topic", file=sys.stderr)
    return int(any(size > LIMIT for size in sizes.values()))


if __name__ == "__main__":
    sys.exit(main())
