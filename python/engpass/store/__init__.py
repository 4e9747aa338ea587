"""The store: campaigns, searches and paths, and the raw outcomes of their points, in SQLite or PostgreSQL.

`Store.open` takes a path or a URL. Every outcome is kept as its engine wrote it; tables are made on
demand.
"""

from engpass.store.record import Failure, Finished, RunRecord, new_record
from engpass.store.store import Store

__all__ = ["Failure", "Finished", "RunRecord", "Store", "new_record"]
