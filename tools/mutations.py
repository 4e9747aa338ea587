"""Check that tests notice deliberate faults: `python tools/mutations.py [NAME ...]`.

Each `tests/mutations/NAME.patch` introduces one fault. Its head describes the fault in a sentence and names
the tests that must notice it, a `cargo test` or a `pytest` command, after `Tests:`. The script works on a
copy of the checkout. It first runs the named tests without a fault: they must pass. Then it applies one patch
at a time and expects a failure.

Exit code 1 if a patch does not apply or does not compile, or if its tests pass.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "tests" / "mutations"
COPY = ROOT / "target" / "mutations" / "checkout"
TIMEOUT_S = 900

# The copy has its own build folder, because cargo takes the same crate of two checkouts for one. A property
# need not find its smallest failing example.
ENVIRONMENT = os.environ | {
    "CARGO_TARGET_DIR": str(COPY.parent / "target"),
    "PYTHONPATH": str(COPY / "python"),
    "PYTHONDONTWRITEBYTECODE": "1",
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "RUST_BACKTRACE": "0",
}


class FaultError(Exception):
    """A mutation that proves nothing, or that no test noticed."""


@dataclass(frozen=True)
class Mutation:
    """A patch, the fault that it introduces, and the command that must notice it."""

    path: Path
    fault: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the patch without its suffix."""
        return self.path.stem

    @staticmethod
    def read(path: Path) -> Mutation:
        """Read the head of a patch; raises `FaultError` if it is not complete."""
        head, found, _ = path.read_text().partition("\n--- ")
        tests = re.search(r"^Tests: (.+)$", head, re.MULTILINE)
        fault = head.partition("\nTests:")[0].strip()
        if not (found and tests and fault):
            raise FaultError("the head has no sentence, no `Tests:` line or no patch after it")
        command = tuple(shlex.split(tests[1]))
        if command[:2] != ("cargo", "test") and command[0] != "pytest":
            raise FaultError("`Tests:` is neither `cargo test` nor `pytest`")
        return Mutation(path, " ".join(fault.split()), command)


def main() -> int:
    """Try the named mutations, or all; return 1 if there are problems."""
    wanted = sys.argv[1:]
    paths = [PATCHES / f"{name}.patch" for name in wanted] or sorted(PATCHES.glob("*.patch"))
    copy_checkout()
    problems: list[str] = []
    mutations: list[Mutation] = []
    for path in paths:
        try:
            mutation = Mutation.read(path)
            apply(mutation, "--check")
            mutations.append(mutation)
        except (FaultError, OSError) as error:
            problems.append(f"{path.stem}: {error}")
    # Sort by crate, because a change of a crate rebuilds all that use it.
    mutations.sort(key=lambda mutation: mutation.tests)
    for command in dict.fromkeys(mutation.tests for mutation in mutations):
        try:
            if (done := run_tests(command)).returncode:
                output = (done.stdout + done.stderr)[-4000:]
                problems.append(f"without a fault, `{shlex.join(command)}` fails:\n{output}")
        except FaultError as error:
            problems.append(f"without a fault, {error}")
    if not problems:
        problems = [problem for mutation in mutations if (problem := attempt(mutation))]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{len(mutations)} mutations, {len(problems)} problems")
    return int(bool(problems))


def attempt(mutation: Mutation) -> str | None:
    """Apply one mutation, run its tests and undo it. Return the problem, or `None` if a test failed."""
    begin = time.monotonic()
    changed = changed_files(mutation)
    originals = {path: path.read_bytes() for path in changed}
    apply(mutation)
    try:
        noticed = notice(mutation)
    except FaultError as error:
        print(f"  WRONG {mutation.name}: {error}", flush=True)
        return f"{mutation.name}: {error} ({mutation.fault})"
    finally:
        # The new file time makes cargo build it again.
        for path, content in originals.items():
            path.write_bytes(content)
    print(f"  caught {mutation.name} by {noticed} ({time.monotonic() - begin:.0f} s)", flush=True)
    return None


def notice(mutation: Mutation) -> str:
    """Run the tests of an applied mutation. Return the first failed test; raise `FaultError` if none did."""
    command = mutation.tests
    if command[0] == "cargo":
        options = command[2 : command.index("--")] if "--" in command else command[2:]
        build = run_tests(("cargo", "test", "--no-run", *options))
        if build.returncode:
            raise FaultError(f"it does not compile:\n{build.stderr}")
    done = run_tests(command)
    if done.returncode == 0:
        raise FaultError(f"it survives `{shlex.join(command)}`")
    # Exit code 101 of cargo and 1 of pytest: a test failed. Others of pytest: it cannot load a file.
    pattern, expected = (r"^test (\S+) .*FAILED$", 101) if command[0] == "cargo" else (r"^FAILED (\S+)", 1)
    failed = re.search(pattern, done.stdout, re.MULTILINE)
    if done.returncode != expected or not failed:
        raise FaultError(f"`{shlex.join(command)}` ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return failed[1]


def run_tests(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a test command in the copy; raises `FaultError` if it takes too long."""
    if command[0] == "pytest":
        command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *command[1:])
    try:
        return subprocess.run(
            command, cwd=COPY, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise FaultError(f"`{shlex.join(command)}` runs for more than {TIMEOUT_S} s") from None


def apply(mutation: Mutation, *options: str) -> None:
    """Apply a patch to the copy; raises `FaultError` if the code has changed too much."""
    done = git("apply", *options, str(mutation.path))
    if done.returncode:
        raise FaultError(f"it no longer applies: {done.stderr.strip()}")


def changed_files(mutation: Mutation) -> list[Path]:
    """Return the files of the copy that a patch changes."""
    lines = git("apply", "--numstat", str(mutation.path)).stdout.splitlines()
    return [COPY / line.split("\t")[2] for line in lines]


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in the copy as if it were not inside a checkout."""
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(COPY.parent)}
    return subprocess.run(
        ("git", *arguments), cwd=COPY, env=environment, capture_output=True, text=True, check=False
    )


def copy_checkout() -> None:
    """Copy tracked and new files and the built extension, with new times, so that cargo builds them again.

    The last build may contain a fault.
    """
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.rmtree(COPY, ignore_errors=True)
    extensions = (path.relative_to(ROOT) for path in (ROOT / "python").rglob("*.so"))
    for name in [*filter(None, listed.stdout.split("\0")), *map(str, extensions)]:
        source, target = ROOT / name, COPY / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target, follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main())
