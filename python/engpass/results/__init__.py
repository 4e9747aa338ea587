"""What a run gave: outcomes, their signals, their ledgers, and comparisons of engines and limits."""
