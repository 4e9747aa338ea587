"""`engpass limit`: the fair share and the bound of each flow."""

from __future__ import annotations

from itertools import islice

from engpass import above
from engpass.cli import console, options


def command(
    file: options.File,
    set_: options.Set = None,
    variant: options.Variants = None,
    as_json: options.Json = False,
) -> None:
    """The fair share of each flow, from line rate to goodput, with its bottleneck; and its bound.

    Closed forms at the file's own values; the sweep is not expanded.
    """
    from engpass.testbed import load

    testbed = load(file, options.overrides(set_))
    console.tell_warnings(testbed, as_json=as_json)
    outcomes = testbed.limit(variant)
    options.tell_left_out(testbed, ["limit"], outcomes)
    if as_json:
        plain = {
            name: {key: o[key] for key in ("flows", "links") if key in o} for name, o in outcomes.items()
        }
        console.line({"variants": plain} if testbed.has_variants else plain["base"])
        return
    from engpass.cli.tables import MOST_FLOWS, waterfall
    from engpass.say import duration

    out = console.tables()
    for name, outcome in outcomes.items():
        flows = outcome["flows"]
        for flow, result in islice(flows.items(), MOST_FLOWS):
            title = f"{flow}, variant {name}" if testbed.has_variants else flow
            out.print(waterfall(title, result))
            out.print(result["sentence"], markup=False, soft_wrap=True)
            if above.differ(result["goodput_bit_per_s"], above.bound(result)):
                out.print(result["bound_sentence"], markup=False, soft_wrap=True)
            if idle := result.get("idle_delay_s"):
                what = "a segment" if result["kind"] == "tcp-stream" else "a message"
                out.print(f"idle delay: {what} takes {duration(idle)} one way if it meets nothing else")
            out.print()
        if len(flows) > MOST_FLOWS:
            out.print(f"{MOST_FLOWS} of {len(flows):,} flows are shown; `--json` has all", markup=False)
