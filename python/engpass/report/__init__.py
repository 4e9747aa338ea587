"""The report of a run: one HTML file that opens offline, and the same figures as pictures.

It reads only what it is given.
"""

from engpass.report.charts import export_figures, figures
from engpass.report.page import render, render_explanation

__all__ = ["export_figures", "figures", "render", "render_explanation"]
