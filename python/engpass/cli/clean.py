"""`engpass clean`: removes testbeds that a crash left behind."""

from __future__ import annotations

from engpass.cli import console, options


def command(as_json: options.Json = False) -> None:
    """Remove namespaces and programs of testbeds that a crash left behind.

    Testbeds that are up stay. The command also reports their captures, and logs that are incomplete.
    """
    from engpass import netlab

    removed = netlab.clean()
    captured = [file for one in removed for file in one.written.captured]
    broken = [one.written.broken_log for one in removed if one.written.broken_log is not None]
    if as_json:
        console.line({"removed": [one.what for one in removed], "captured": captured, "broken_logs": broken})
        return
    console.tell_captured(captured)
    console.tell_broken(broken)
    for one in removed:
        console.tell(f"removed {one.what}")
    if not removed:
        console.tell("there is nothing to remove")
