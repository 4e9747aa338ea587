"""`engpass catalogue`: prints all component kinds."""

from __future__ import annotations

from engpass import _engpass
from engpass.cli import console


def command() -> None:
    """Print all component kinds with their settings as JSON."""
    console.out(_engpass.catalogue().rstrip("\n"))
