"""Checks that commands, options, files and keys that the pages name exist. Nothing is run."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w
import typer.exceptions
from typer.main import get_command

import engpass
from documents import ROOT, Page
from engpass import claims, gallery
from engpass.cli import COMMANDS, app
from engpass.error import EngpassError

NAMES = ("engpass", ".venv/bin/engpass")
_ROOT_COMMAND: Any = get_command(app)
_CONTEXT: Any = _ROOT_COMMAND.make_context("engpass", ["check"], resilient_parsing=True)
# A part of a testbed may lack tables that the rest of its file has.
_INCOMPLETE = {"missing-key", "dangling-reference", "empty-testbed", "no-traffic"}


def invocations(script: str) -> Iterator[list[str]]:
    """The arguments of every call of `engpass` in lines of a shell; raises `ValueError` for an open quote."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        call: list[str] = []
        for word in [*words, ";"]:
            if not re.fullmatch(r"[();<>|&]+", word):
                call.append(word)
                continue
            while call and re.fullmatch(r"\w+=.*|do|then|else|!", call[0]):
                del call[0]
            if call and call[0] in NAMES:
                yield call[1:]
            call = []


def fault_of_call(args: list[str], files: Mapping[str, str]) -> str | None:
    """Check a call of `engpass`: its options, and the testbed, variants and values that it names.

    `files` has the names and texts of the files that the page saves. Returns the fault, or `None`.
    """
    name, *rest = args or ["--help"]
    if name.startswith("-"):
        return None
    command = _ROOT_COMMAND.get_command(_CONTEXT, name)
    if command is None:
        return f"there is no command `{name}`"
    try:
        given = command.make_context(name, rest, parent=_CONTEXT).params
        if "study" in given:
            return _fault_of_testbed(str(gallery.study(given["study"]).testbed), files, given)
        file = given.get("file") or given.get("run", "")
        return _fault_of_testbed(file, files, given) if str(file).endswith(".toml") else None
    except (typer.exceptions.TyperException, EngpassError) as error:
        return str(error)


def _fault_of_testbed(file: str, files: Mapping[str, str], given: Mapping[str, Any]) -> str | None:
    """Check that a testbed exists, and has the variants, flows, hosts and paths that a call names."""
    pairs = [tuple(pair.split("=", 1)) for pair in given.get("set_") or ()]
    try:
        if file in files:
            testbed = engpass.loads(files[file], pairs)
        elif (ROOT / file).exists():
            testbed = engpass.load(ROOT / file, pairs)
        else:
            return f"there is no file `{file}`, and the page saves none of that name"
    except engpass.InvalidTestbed as error:
        return str(error.rendered)
    flows = [flow.name for flow in testbed.topology.flows]
    known = {
        "variant": testbed.variants,
        "traffic": flows,
        "flow": flows,
        "host": [node.name for node in testbed.topology.nodes],
    }
    for what, names in known.items():
        wanted = given.get(what) or ()
        for name in [wanted] if isinstance(wanted, str) else wanted:
            if name not in names:
                return f"`{file}` has no {what} `{name}`"
    return None


def faults_in_prose(text: str) -> Iterator[str]:
    """Find commands, options and verbs of make that inline code names and that do not exist."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose):
        words = span.split()
        if words[0] in NAMES and len(words) > 1:
            fault = _fault_of_words(words[1:])
        elif words[0] == "make" and len(words) > 1:
            fault = None if words[1] in _verbs() else f"the Makefile has no verb `{words[1]}`"
        elif re.match("--[a-z]", words[0]):
            known = {option for command in COMMANDS for option in _options(command.name)}
            fault = _unknown_option(words[:1], known)
        else:
            continue
        if fault is not None:
            yield f"`{span}`: {fault}"


def _fault_of_words(words: list[str]) -> str | None:
    """Check a call in prose, where arguments may be left out."""
    name, *rest = words
    if name.startswith("--"):
        return _unknown_option(words, {"--version", "--help"})
    if not re.match("[a-z]", name):
        return None
    if name not in (command.name for command in COMMANDS):
        return f"there is no command `{name}`"
    # Options after `--` belong to another program.
    own = rest[: rest.index("--")] if "--" in rest else rest
    return _unknown_option(own, _options(name))


def _unknown_option(words: list[str], known: set[str]) -> str | None:
    for word in words:
        if word.startswith("--") and word.split("=")[0] not in known:
            return f"there is no option `{word}`"
    return None


@cache
def _verbs() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cache
def _options(name: str) -> set[str]:
    command = _ROOT_COMMAND.get_command(_CONTEXT, name)
    return {
        "--help",
        "-h",
        *(option for one in command.params for option in (*one.opts, *one.secondary_opts)),
    }


def faults_of_tables(page: Page, folder: Path) -> Iterator[str]:
    """Check the TOML of a page: files must pass `engpass check`, parts may lack the rest of their file."""
    stated: dict[str, Any] = {}
    for block in page.blocks:
        if block.language != "toml":
            continue
        text = "\n".join(block.lines)
        tables = tomllib.loads(text)
        if {"claim", "campaign"} & set(tables):
            # Claims may be spread over several blocks, which together are one file.
            stated |= tables
            continue
        try:
            engpass.loads(text)
        except engpass.InvalidTestbed as error:
            wrong = [
                found["message"]
                for found in error.diagnostics
                if block.file is not None or found["code"] not in _INCOMPLETE
            ]
            yield from (f"{block.where}: {message}" for message in wrong)
    if stated:
        file = folder / "claims.toml"
        file.write_text(tomli_w.dumps(stated))
        try:
            claims.read(file)
        except EngpassError as error:
            yield str(error)
