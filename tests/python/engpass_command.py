"""The command for tests that start it as a process of its own."""

import signal

import fake_native

if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
    signal.signal(signal.SIGINT, signal.default_int_handler)

fake_native.install()

from engpass.cli import main  # noqa: E402 (the double goes first)

main()
