"""`python -m engpass` is the command `engpass`."""

from engpass.cli import main

main()
