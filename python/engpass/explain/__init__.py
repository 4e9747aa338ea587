"""Facts about a point: which one is explained, how its flow is served, and what its bottleneck is."""
