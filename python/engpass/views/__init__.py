"""Views: each is one function from a result to a document."""
