"""Fail when too many files of a crate import each other in a cycle, or when crates do.

A file imports another file when it names an item of it, in a `use` or by a path like `super::socket::open`.
Re-exports are followed to the file that defines the item. Imports between a module and the modules below it
do not count, and neither do tests.

`python tools/import_cycles.py [--edges] [CHECKOUT]` prints the largest cycle of each crate and every cycle
that is too large; `--edges` adds the imports in it.
"""

import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Files that may form a cycle.
LIMIT = 5

Names = tuple[str, ...]
Graph = dict[str, set[str]]

COMMENT = r"//[^\n]*|/\*.*?\*/"
STRING = r'\b[bc]?r(?P<hashes>#*)".*?"(?P=hashes)|(?:\b[bc])?"(?:\\.|[^"\\])*"'
CHARACTER_OR_LIFETIME = r"'\\.[^']*'|'[^'\\]'|'\w+"
TOKEN = re.compile(
    f"{COMMENT}|(?P<string>{STRING})|{CHARACTER_OR_LIFETIME}|(?P<token>::|\\w+|\\S)", re.DOTALL
)
# Attributes of serde name functions in strings.
QUOTED_PATH = re.compile(r'"((?:crate|self|super)(?:::\w+)+)"')
NAME = re.compile(r"[A-Za-z_]\w*")
OPEN, CLOSE = frozenset("([{"), frozenset(")]}")
TEST = ["#", "[", "cfg", "(", "test", ")", "]"]
ITEM = re.compile("async|const|enum|extern|fn|impl|macro_rules|mod|static|struct|trait|type|union|unsafe|use")


def tokenize(text: str) -> list[str]:
    """Split Rust source into tokens, without comments, literals and items that only tests compile."""
    tokens: list[str] = []
    for match in TOKEN.finditer(text):
        if quoted := QUOTED_PATH.fullmatch(match["string"] or ""):
            tokens += re.findall(r"::|\w+", quoted[1])
        elif match["token"]:
            tokens.append(match["token"])
    kept: list[str] = []
    place = 0
    while place < len(tokens):
        if tokens[place : place + len(TEST)] == TEST:
            place = end_of_item(tokens, place + len(TEST))
        else:
            kept.append(tokens[place])
            place += 1
    return kept


def end_of_item(tokens: list[str], place: int) -> int:
    """Return the position after the item, field or statement that begins at `place`."""
    while tokens[place] == "#":
        place = end_of_brackets(tokens, place + 1)
    if tokens[place] == "pub":
        place = end_of_brackets(tokens, place + 1) if tokens[place + 1] == "(" else place + 1
    is_item = ITEM.fullmatch(tokens[place]) is not None
    has_body = is_item and tokens[place] not in ("use", "const", "static")
    while place < len(tokens) and tokens[place] not in CLOSE:
        token = tokens[place]
        place = end_of_brackets(tokens, place) if token in OPEN else place + 1
        if token == ";" or (token == "," and not is_item) or (token == "{" and has_body):
            break
    return place


def end_of_brackets(tokens: list[str], place: int) -> int:
    """Return the position after the brackets that open at `place`."""
    depth = 0
    for end in range(place, len(tokens)):
        depth += (tokens[end] in OPEN) - (tokens[end] in CLOSE)
        if depth == 0:
            return end + 1
    return len(tokens)


@dataclass
class Module:
    """One file of a crate."""

    file: str
    path: Names
    children: set[str] = field(default_factory=set)
    """The modules that it declares in separate files."""
    names: dict[str, Names] = field(default_factory=dict)
    """The paths of its imports, by the names that they have in it."""
    paths: set[Names] = field(default_factory=set)
    """All paths that it names."""


def read_module(source: Path, file: Path, path: Names) -> Module:
    """Read which modules a file declares and which paths it names."""
    module = Module(str(file.relative_to(source)), path)
    tokens = tokenize(file.read_text())
    # The brackets that are open; `mod` is that of an inline module.
    scopes: list[str] = []
    place = 0
    while place < len(tokens):
        token, following = tokens[place], tokens[place + 1 : place + 3]
        end, found = paths_at(tokens, place)
        for name, named in found:
            module.paths.add(outside(named, scopes.count("mod")))
            if name and not scopes:
                module.names[name] = named
        if token == "mod" and following[1:] == [";"]:
            module.children.add(following[0])
        elif token == "mod" and following[1:] == ["{"]:
            scopes.append("mod")
            end = place + 3
        elif token in OPEN:
            scopes.append(token)
        elif token in CLOSE:
            scopes.pop()
        place = end
    return module


def paths_at(tokens: list[str], place: int) -> tuple[int, list[tuple[str, Names]]]:
    """Return the position after the paths that begin at `place`, and the paths with their new names."""
    end = place + 1
    if tokens[place] == "use" and tokens[end] != "<":
        end = tokens.index(";", place)
        return end, list(leaves([token for token in tokens[place + 1 : end] if token != "::"]))
    if tokens[end : end + 1] != ["::"] or not NAME.match(tokens[place]):
        return end, []
    while tokens[end] == "::" and NAME.match(tokens[end + 1]):
        end += 2
    return end, [("", tuple(tokens[place:end:2]))]


def leaves(tokens: list[str]) -> Iterator[tuple[str, Names]]:
    """Yield the paths of a `use`, each with the name that it gives to its item."""
    if "{" in tokens:
        place = tokens.index("{") + 1
        head = tokens[: place - 1]
        while place < len(tokens) - 1:
            end = place
            while tokens[end] not in (",", "}"):
                end = end_of_brackets(tokens, end) if tokens[end] == "{" else end + 1
            yield from leaves(head + tokens[place:end])
            place = end + 1
    elif tokens:
        path = tokens[: tokens.index("as")] if "as" in tokens else tokens
        whole = len(path) > 1 and path[-1] in ("self", "*")
        path = path[:-1] if whole else path
        yield tokens[-1] if "as" in tokens else path[-1], tuple(path)


def outside(path: Names, inline: int) -> Names:
    """Rewrite a path from inside `inline` inline modules relative to the module of the file."""
    while inline and path[0] == "super":
        path, inline = path[1:], inline - 1
    return path


class Crate:
    """The modules of a crate."""

    def __init__(self, source: Path, root: str) -> None:
        self.source = source
        self.modules: dict[Names, Module] = {}
        self.read(source / root, ())

    def read(self, file: Path, path: Names) -> None:
        """Read a file and those of the modules that it declares."""
        module = self.modules[path] = read_module(self.source, file, path)
        for child in sorted(module.children):
            folder = self.source.joinpath(*path)
            below = folder / f"{child}.rs"
            self.read(below if below.exists() else folder / child / "mod.rs", (*path, child))

    def resolve(self, module: Module, path: Names, seen: Iterable[tuple[Names, str]] = ()) -> Module | None:
        """Return the module that defines what a path names; `None` if it is in another crate.

        `seen` holds the imports that were followed so far.
        """
        if path[:1] == ("crate",):
            module, path = self.modules[()], path[1:]
        elif path[:1] not in (("self",), ("super",)) and path[0] not in module.children | module.names.keys():
            return None
        for place, name in enumerate(path):
            if name == "super":
                module = self.modules[module.path[:-1]]
            elif name in module.children:
                module = self.modules[*module.path, name]
            elif name in module.names and (module.path, name) not in seen:
                target = module.names[name] + path[place + 1 :]
                # The import names an item of another crate.
                return self.resolve(module, target, {*seen, (module.path, name)}) or module
            elif name != "self":
                break
        return module

    def imports(self) -> Graph:
        """Return the files that each file imports."""
        graph: Graph = {module.file: set() for module in self.modules.values()}
        for module in self.modules.values():
            for path in filter(None, module.paths):
                other = self.resolve(module, path)
                if (
                    other
                    and module.path != other.path[: len(module.path)]
                    and other.path != module.path[: len(other.path)]
                ):
                    graph[module.file].add(other.file)
        return graph


def cycles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node, the largest first."""
    reached = {node: reach(graph, node) for node in graph}
    found = {tuple(sorted(other for other in reached[node] if node in reached[other])) for node in graph}
    return sorted((list(nodes) for nodes in found if len(nodes) > 1), key=lambda nodes: (-len(nodes), nodes))


def reach(graph: Graph, node: str) -> set[str]:
    """Return the nodes that a path of at least one edge reaches."""
    found: set[str] = set()
    ahead = list(graph[node])
    while ahead:
        other = ahead.pop()
        if other not in found:
            found.add(other)
            ahead += graph[other]
    return found


def dependencies(folder: Path) -> Graph:
    """Return the crates in the folder on which each of them depends, for tests and builds as well."""
    manifests = [tomllib.loads(file.read_text()) for file in sorted(folder.glob("*/Cargo.toml"))]
    names = {manifest["package"]["name"] for manifest in manifests}
    graph: Graph = {name: set() for name in names}
    for manifest in manifests:
        for table in (manifest, *manifest.get("target", {}).values()):
            for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
                graph[manifest["package"]["name"]] |= table.get(kind, {}).keys() & names
    return graph


def show(crate: str, graph: Graph, nodes: list[str], edges: bool) -> None:
    """Print a cycle."""
    print(f"{crate}: {len(nodes)} files import each other")
    if not edges:
        print(
            textwrap.fill(
                ", ".join(nodes), 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
            )
        )
    for node in nodes if edges else ():
        print(f"    {node} -> {', '.join(sorted(graph[node] & set(nodes)))}")


def main(words: list[str]) -> int:
    """Print cycles; return 1 if crates form one, or too many files."""
    edges = "--edges" in words
    checkout = next((Path(word) for word in words if not word.startswith("--")), Path(__file__).parent.parent)
    folder = checkout / "crates"
    wrong = [f"{', '.join(crates)} depend on each other" for crates in cycles(dependencies(folder))]
    for source in sorted(folder.glob("*/src")):
        crate = source.parent.name
        graph = Crate(source, "lib.rs" if (source / "lib.rs").exists() else "main.rs").imports()
        found = cycles(graph)
        large = [nodes for nodes in found if len(nodes) > LIMIT]
        for nodes in large or found[:1]:
            show(crate, graph, nodes, edges)
        if large:
            wrong.append(f"{crate}: {sum(map(len, large))} files are in cycles of more than {LIMIT}")
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(
            "help: move what they share to a module of its own; `--edges` prints the imports", file=sys.stderr
        )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
