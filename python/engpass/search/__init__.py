"""Searches over the offered load of a stream of datagrams: what a path carries without loss, or with little.

A search asks a trial function (an offered load and a duration in, what was lost out) and knows nothing of
engines: the same search runs on a simulated and on a measured network, and in a test on a made-up one.
"""

from engpass.search.goal import Goal, GoalResult, classify, conditional_throughput
from engpass.search.loss import frame_loss
from engpass.search.mlrsearch import search
from engpass.search.rfc2544 import Throughput, throughput
from engpass.search.trial import Budget, Measurer, SearchError, Trial

__all__ = [
    "Budget",
    "Goal",
    "GoalResult",
    "Measurer",
    "SearchError",
    "Throughput",
    "Trial",
    "classify",
    "conditional_throughput",
    "frame_loss",
    "search",
    "throughput",
]
