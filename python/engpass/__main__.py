"""`python -m engpass` runs the command `engpass`."""

import signal

# Until a command starts, let Ctrl-C end the program at once, without Python's traceback: nothing needs
# cleanup yet.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from engpass.cli import main

if __name__ == "__main__":
    main()
