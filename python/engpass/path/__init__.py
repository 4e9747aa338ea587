"""A path as TCP meets it: RFC 6349's sequence of measurements, in its order."""

from engpass.path.metrics import Metrics, ideal_bit_per_s, metrics
from engpass.path.mtu import largest
from engpass.path.sequence import Asked, run_path

__all__ = ["Asked", "Metrics", "ideal_bit_per_s", "largest", "metrics", "run_path"]
