"""Documents, and how a terminal, a page and JSON show them.

A view is one function from a result to a `Document`; the renderers know no results.
"""
