"""The results of a run: outcomes, their signals and ledgers, and comparisons of engines and limits."""
