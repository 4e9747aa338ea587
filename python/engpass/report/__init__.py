"""The report of a run: one HTML file that opens offline, and the same figures as pictures.

Its functions take the run and its outcomes as arguments; they read no store.
"""

from engpass.report.charts import export_figures, figures
from engpass.report.page import render, render_explanation

__all__ = ["export_figures", "figures", "render", "render_explanation"]
