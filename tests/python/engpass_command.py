"""The command for tests that start it as a separate process."""

import signal

from engpass.cli import main

# Ctrl-C must reach the command even if the tests run in the background, with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Likewise SIGHUP of a closed terminal, if the tests run under `nohup`.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

main()
