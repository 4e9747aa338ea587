"""`python -m engpass` is the command `engpass`."""

import signal

# Before a command runs, Ctrl-C ends the program at once, without the traceback of an import: no cleanup is
# needed yet.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from engpass.cli import main

if __name__ == "__main__":
    main()
