"""The tables of the store in its current version.

A change here needs a new `VERSION`, a step in `migrations.py`, and an old file in `tests/data/`.
"""

VERSION = 3

TABLES = {
    # One row. No other program uses this table name, so it identifies a store.
    "engpass_store": "version INTEGER NOT NULL",
    # A campaign, a search over the offered load, or a measured path: `method` says which. The points of a
    # search are its trials, each of which depends on earlier results; their number is not known in advance.
    # JSON as text works the same on every database and keeps the bytes of a record.
    "run": """
        id VARCHAR(32) NOT NULL PRIMARY KEY,
        digest VARCHAR(64) NOT NULL,
        name TEXT NOT NULL,
        description TEXT,
        source TEXT NOT NULL,
        text TEXT NOT NULL,
        overrides TEXT NOT NULL,
        engines TEXT NOT NULL,
        variants TEXT NOT NULL,
        axes TEXT NOT NULL,
        repeats INTEGER NOT NULL,
        topology TEXT NOT NULL,
        points_total BIGINT NOT NULL,
        created VARCHAR(32) NOT NULL,
        method VARCHAR(32) NOT NULL DEFAULT 'campaign',
        traffic TEXT NOT NULL DEFAULT '',
        settings TEXT NOT NULL DEFAULT '{}',
        result TEXT""",
    # One row per invocation that worked on a run: environment and times. `ended` stays NULL after a kill.
    "session": """
        id INTEGER NOT NULL PRIMARY KEY,
        run_id VARCHAR(32) NOT NULL REFERENCES run (id),
        started VARCHAR(32) NOT NULL,
        ended VARCHAR(32),
        environment TEXT NOT NULL""",
    # The primary key ensures that a point is stored only once, even if several processes write it. `seconds`
    # is its wall-clock time, on which no outcome depends. `trial` has what a search or a path says about it.
    "point": """
        run_id VARCHAR(32) NOT NULL REFERENCES run (id),
        position BIGINT NOT NULL,
        session_id INTEGER NOT NULL REFERENCES session (id),
        seconds FLOAT NOT NULL,
        outcome TEXT,
        error TEXT,
        trial TEXT,
        PRIMARY KEY (run_id, position)""",
}

INDICES = (
    "CREATE INDEX run_digest ON run (digest)",
    "CREATE INDEX session_run ON session (run_id)",
)
