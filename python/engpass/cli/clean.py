"""`engpass clean`: remove what a crash left behind."""

from __future__ import annotations

from engpass.cli import console, options


def command(as_json: options.Json = False) -> None:
    """Remove namespaces and programs of testbeds that a crash left behind; what is up stays."""
    from engpass import netlab

    removed = netlab.clean()
    if as_json:
        console.line({"removed": removed})
        return
    for what in removed:
        console.tell(f"removed {what}")
    if not removed:
        console.tell("nothing was left behind")
