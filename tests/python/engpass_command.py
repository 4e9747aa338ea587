"""The command for tests that start it as a process of its own."""

import signal

from engpass.cli import main

# Ctrl-C must reach it even where the tests themselves run in the background, with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same of a terminal that is closed, where the tests run under `nohup`.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

main()
