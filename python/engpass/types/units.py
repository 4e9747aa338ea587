"""Units of quantities: generated from `crates/engpass-model` by `make gen`."""

from collections.abc import Mapping
from decimal import Decimal

UNITS: Mapping[str, tuple[str, Decimal]] = {
    "B": ("B", Decimal("1e0")),
    "kB": ("B", Decimal("1e3")),
    "MB": ("B", Decimal("1e6")),
    "GB": ("B", Decimal("1e9")),
    "KiB": ("B", Decimal("1024e0")),
    "MiB": ("B", Decimal("1048576e0")),
    "GiB": ("B", Decimal("1073741824e0")),
    "bit/s": ("bit/s", Decimal("1e0")),
    "kbit/s": ("bit/s", Decimal("1e3")),
    "Mbit/s": ("bit/s", Decimal("1e6")),
    "Gbit/s": ("bit/s", Decimal("1e9")),
    "Tbit/s": ("bit/s", Decimal("1e12")),
    "B/s": ("B/s", Decimal("1e0")),
    "kB/s": ("B/s", Decimal("1e3")),
    "MB/s": ("B/s", Decimal("1e6")),
    "GB/s": ("B/s", Decimal("1e9")),
    "ps": ("s", Decimal("1e-12")),
    "ns": ("s", Decimal("1e-9")),
    "us": ("s", Decimal("1e-6")),
    "µs": ("s", Decimal("1e-6")),
    "μs": ("s", Decimal("1e-6")),
    "ms": ("s", Decimal("1e-3")),
    "s": ("s", Decimal("1e0")),
    "min": ("s", Decimal("60e0")),
    "%": ("", Decimal("1e-2")),
    "cells": ("cells", Decimal("1e0")),
    "cell": ("cells", Decimal("1e0")),
    "packets": ("packets", Decimal("1e0")),
    "packet": ("packets", Decimal("1e0")),
    "datagrams": ("datagrams", Decimal("1e0")),
    "datagram": ("datagrams", Decimal("1e0")),
    "timeouts": ("timeouts", Decimal("1e0")),
    "timeout": ("timeouts", Decimal("1e0")),
    "cells/s": ("cells/s", Decimal("1e0")),
    "fps": ("fps", Decimal("1e0")),
}
"""Units of files and results: base unit of each, and its size in it. Shares have none."""
