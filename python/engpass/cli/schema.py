"""`engpass schema`: prints the JSON Schema of testbed files."""

from __future__ import annotations

from engpass import _engpass
from engpass.cli import console


def command() -> None:
    """Print the JSON Schema of testbed files, for editors and other programs."""
    console.out(_engpass.schema().rstrip("\n"))
