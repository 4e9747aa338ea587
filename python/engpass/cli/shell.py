"""`engpass shell`: opens a shell in a host of a testbed that is up."""

from __future__ import annotations

import os

from engpass.cli import console
from engpass.cli.down import File
from engpass.cli.exec import Host, enter


def command(file: File, host: Host) -> None:
    """Open a shell in a host of a testbed that is up."""
    from engpass import netlab

    lab = netlab.find(file)
    member = netlab.member(lab, host)
    console.tell(f"in host `{host}` ({', '.join(member.addresses)}); `exit` closes the shell")
    enter(lab, host, [os.environ.get("SHELL", "/bin/sh")])
