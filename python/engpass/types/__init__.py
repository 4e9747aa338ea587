"""Types that are generated from the Rust definitions."""
