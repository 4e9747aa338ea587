"""Lines and engines as results: the tables of their greatest values, and their export."""

import csv
import io
import json
from pathlib import Path

from conftest import Program
from engpass import load
from engpass.show.blocks import Amount
from engpass.views.resources import engine_table, line_table


def test_the_table_has_the_greatest_value_of_each_signal_over_the_sweep(testbed_file: Path) -> None:
    outcomes = load(testbed_file).run(engines=["simulate"]).outcomes
    table = line_table(outcomes)
    assert [column.title for column in table.columns][:3] == ["Variant", "Line", "Utilisation"]
    rows = {(row[0], row[1]): row[2] for row in table.rows}
    for variant in ("plain", "fast"):
        used = [o.links["wire"].directions[0].utilisation for o in outcomes if o.variant == variant]
        # The repeats of a point are one value: their mean. Without chance they are equal.
        assert rows[variant, "wire: a → b"] == Amount(max(one for one in used if one is not None), "")
    assert ("plain", "wire: b → a") not in rows, "nothing was sent there"
    assert any("greatest" in note for note in table.notes)


def test_show_lines_and_the_page_have_the_table(program: Program, testbed_file: Path) -> None:
    program("run", testbed_file.name, "--engine", "simulate")
    shown = program("show", "--lines").stdout
    assert "wire: a → b" in shown
    program("report", "-o", "r.html")
    assert "wire: a → b" in (testbed_file.parent / "r.html").read_text()


def test_tables_of_a_run_are_data_with_json(program: Program, testbed_file: Path) -> None:
    program("run", testbed_file.name, "--engine", "simulate", "--variant", "plain")
    outcomes = load(testbed_file).run(engines=["simulate"], variants=["plain"]).outcomes
    found = {}
    for name in ("lines", "delays", "ledger"):
        data = json.loads(program("show", f"--{name}", "--json").stdout)
        found[name] = [block for block in data["blocks"] if "rows" in block]
    used = max(one.links["wire"].directions[0].utilisation or 0.0 for one in outcomes)
    assert found["lines"][0]["rows"][0][1] == {"value": used, "unit": "", "remark": ""}
    assert found["lines"][0]["columns"][1]["title"] == "Utilisation"
    assert {"min", "p50", "max"} <= {column["title"] for column in found["delays"][0]["columns"]}
    assert found["ledger"][0]["rows"][-1][0] == "capacity"


def test_export_of_lines_has_a_row_for_each_direction(program: Program, testbed_file: Path) -> None:
    only = ["--engine", "simulate", "--variant", "plain"]
    program("run", testbed_file.name, *only)
    rows = list(csv.DictReader(io.StringIO(program("export", "--of", "lines").stdout)))
    assert len(rows) == 4 * 2 * 2  # swept values, repeats, directions
    assert {(row["link"], row["from"], row["to"]) for row in rows} == {("wire", "a", "b"), ("wire", "b", "a")}
    assert all(float(row["sent_cells"]) > 0 for row in rows if row["from"] == "a")


def test_the_table_of_engines_has_the_greatest_load_of_each_cpu(testbed_file: Path) -> None:
    outcomes = load(testbed_file).run(engines=["simulate"], variants=["plain"]).outcomes
    table = engine_table(outcomes)
    loads = [o.nodes["a"].engines["cpu"].load for o in outcomes]
    assert 0 < max(loads) <= 1
    assert [list(row) for row in table.rows if row[0] == "a: cpu"] == [["a: cpu", Amount(max(loads), "")]]


def test_export_of_engines_has_a_row_for_each_cpu_of_a_point(program: Program, testbed_file: Path) -> None:
    program("run", testbed_file.name, "--engine", "simulate", "--variant", "plain")
    rows = list(csv.DictReader(io.StringIO(program("export", "--of", "engines").stdout)))
    assert len(rows) == 4 * 2  # swept values, repeats
    assert {(row["node"], row["name"]) for row in rows} == {("a", "cpu")}
    assert all(0 < float(row["load"]) <= 1 for row in rows)
