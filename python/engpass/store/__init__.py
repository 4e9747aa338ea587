"""The store: campaigns and the raw outcomes of their points, in SQLite or PostgreSQL.

`Store.open` takes a path or a URL. Every outcome is kept as its engine wrote it; tables are made on
demand.
"""

from engpass.store.record import Failure, Finished, RunRecord
from engpass.store.searches import SearchRecord
from engpass.store.store import Store

__all__ = ["Failure", "Finished", "RunRecord", "SearchRecord", "Store"]
