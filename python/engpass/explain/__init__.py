"""Facts about a point: the flow to explain, how well it is served, and what its bottleneck is."""
