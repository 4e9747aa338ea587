"""Documents, and how a terminal, a page and JSON show them.

The renderers know no results; views make documents and tables of them.
"""
