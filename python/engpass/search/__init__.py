"""Searches for the highest load of a datagram stream that a path carries without loss, or with little.

A search calls a trial function, which takes a load and a duration and returns the loss. It does not depend on
an engine: the same search runs on simulated and measured networks, and on a made-up one in tests.
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
