"""Fail when the oracle shares more with the engine than docs/why/README.md lists.

The oracle is evidence only as far as it is independent of the engine. This check compares the table
"shared with the oracle" with the paths that the oracle's source names, and with the functions of the shared
crates that its object code calls. The object code is not optimized: inlining hides no method call.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "crates/engpass-oracle/src"
LIST = ROOT / "docs/why/README.md"
HEADER = "| shared with the oracle | items |"
CRATES = ("engpass_model", "engpass_testbed")
# Traits that the compiler derives for data, and the arithmetic of quantities.
DERIVED = ("core::clone::", "core::cmp::", "core::default::", "core::fmt::", "core::hash::")
ARITHMETIC = ("engpass_model::time::", "engpass_model::unit::")


def expand(path: str) -> list[str]:
    """Split `a::{b, c::{d, e}}` into its paths."""
    head, brace, rest = path.partition("{")
    if not brace:
        return [path.strip().partition(" as ")[0]]
    inner, depth, start, parts = rest[: rest.rindex("}")], 0, 0, []
    for place, letter in enumerate(inner + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append(inner[start:place].strip())
            start = place + 1
    joined = [head.strip() + part.removeprefix("self") for part in parts if part]
    return [leaf.removesuffix("::") for part in joined for leaf in expand(part)]


def listed() -> set[str]:
    """Read the items of the table: paths without `engpass_model::`; `a::*` means all of a module."""
    rows = LIST.read_text().split(HEADER)[1].split("\n\n")[0].splitlines()[2:]
    items = [item for row in rows for item in re.findall(r"`([^`]+)`", row.split("|")[2])]
    paths = [path for item in items for path in expand(item)]
    return {path if path.startswith(CRATES) else f"engpass_model::{path}" for path in paths}


def named() -> dict[str, Path]:
    """Collect the paths into the shared crates that the oracle's source names."""
    found: dict[str, Path] = {}
    for file in sorted(SOURCE.rglob("*.rs")):
        text = re.sub(r"//.*", "", file.read_text())
        for use in re.findall(r"\buse ((?:engpass_model|engpass_testbed)\b[^;]*);", text):
            found |= dict.fromkeys(expand(" ".join(use.split())), file)
        text = re.sub(r"\buse [^;]*;", "", text)
        found |= dict.fromkeys(re.findall(r"\b(?:engpass_model|engpass_testbed)(?:::\w+)+", text), file)
    return found


def called() -> set[str]:
    """Collect the functions of the shared crates that the oracle's object code contains or refers to."""
    build = ["cargo", "build", "--quiet", "--package", "engpass-oracle", "--message-format", "json"]
    messages = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    libraries = {}
    for message in map(json.loads, messages.splitlines()):
        if message["reason"] == "compiler-artifact":
            libraries[message["target"]["name"]] = message["filenames"][0]
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "oracle.o"
        rustc = ["rustc", "--crate-name", "engpass_oracle", "--crate-type", "lib", "--edition", "2024"]
        rustc += [f"--extern={crate}={libraries[crate]}" for crate in CRATES]
        rustc += ["-L", f"dependency={Path(libraries[CRATES[0]]).parent}", "--cap-lints", "allow"]
        rustc += ["-C", "opt-level=0", "-C", "no-prepopulate-passes", "--emit", f"obj={code}"]
        subprocess.run([*rustc, str(SOURCE / "lib.rs")], cwd=ROOT, check=True)
        symbols = subprocess.run(["nm", "-C", str(code)], capture_output=True, text=True, check=True).stdout
    names = {line.split(" ", 2)[-1].strip().removeprefix("U ") for line in symbols.splitlines()}
    shared = re.compile(r"^[<&]*(?:engpass_model|engpass_testbed)::| as (?:engpass_model|engpass_testbed)::")
    return {name for name in names if shared.search(name)}


def key(path: str) -> tuple[str, str]:
    """Return crate and module, and the last two names: the list omits the files of re-exported types."""
    names = path.split("::")
    return "::".join(names[:2]), "::".join(names[-2:])


def modules(items: set[str]) -> tuple[str, ...]:
    """Return the modules that are shared as a whole."""
    return tuple(item.removesuffix("*") for item in items if item.endswith("::*"))


def is_listed(function: str, items: set[str]) -> bool:
    """Return whether a demangled function is derived for data, or listed by itself or with its module."""
    if " as " in function:
        type_, trait = function.lstrip("<&").split(" as ", 1)
        if trait.startswith(DERIVED) or (trait.startswith("core::ops::") and type_.startswith(ARITHMETIC)):
            return True
        function = type_
    function = function.lstrip("<&").replace("<impl ", "").split("::{{closure}}")[0]
    return function.startswith(modules(items)) or key(function) in {key(item) for item in items}


def main() -> int:
    """Print uses without an entry in the list and entries without a use; return 1 if there are any."""
    items, paths, functions = listed(), named(), called()
    whole = modules(items)
    wrong = [
        f"{file.relative_to(ROOT)} names `{path}`"
        for path, file in paths.items()
        if path not in items and not path.startswith((*whole, *(f"{item}::" for item in items)))
    ]
    wrong += [f"the oracle calls `{function}`" for function in functions if not is_listed(function, items)]
    keys = {key(function.lstrip("<&").split("::{{closure}}")[0]) for function in functions}
    wrong += [
        f"{LIST.relative_to(ROOT)} lists `{item}`, which the oracle does not use"
        for item in items
        if not item.endswith("::*") and item not in paths and key(item) not in keys
    ]
    for line in sorted(wrong):
        print(line, file=sys.stderr)
    if wrong:
        print("help: write it again in the oracle, or list it if it is data", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
