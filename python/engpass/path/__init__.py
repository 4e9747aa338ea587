"""Measures a path for TCP with the sequence of steps of RFC 6349."""

from engpass.path.metrics import Metrics, ideal_bit_per_s, metrics
from engpass.path.mtu import largest
from engpass.path.sequence import CONNECTIONS_AT_MOST, Asked, run_path

__all__ = ["CONNECTIONS_AT_MOST", "Asked", "Metrics", "ideal_bit_per_s", "largest", "metrics", "run_path"]
