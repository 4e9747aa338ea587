"""`engpass limit`: prints the fair share and the bound of each flow."""

from __future__ import annotations

from engpass.cli import console, options
from engpass.results import above_limit, receivers


def command(
    file: options.File,
    set_: options.Set = None,
    variant: options.Variants = None,
    as_json: options.Json = False,
) -> None:
    """Show the fair share of each flow, from line rate to goodput, with its bottleneck and its bound.

    Computed in closed form from the values in the file; swept values are not used.
    """
    from engpass.testbed import load

    testbed = load(file, options.overrides(set_))
    console.tell_warnings(testbed, variant, as_json=as_json)
    outcomes = testbed.limit(variant)
    options.tell_left_out(testbed, ["limit"], outcomes)
    if as_json:
        from msgspec import to_builtins

        plain = {name: to_builtins({"flows": o.flows, "links": o.links}) for name, o in outcomes.items()}
        console.line({"variants": plain} if testbed.has_variants else plain["base"])
        return
    from engpass.cli.summary import MOST_FLOWS
    from engpass.formatting import duration
    from engpass.show.terminal import grid
    from engpass.views.points import stages

    out = console.tables()
    for name, outcome in outcomes.items():
        # Each receiver of a multicast group has its own fair share and bound.
        every = [
            (receivers.name(flow, host), seen)
            for flow, found in outcome.flows.items()
            for host, seen in receivers.each(found)
        ]
        for flow, result in every[:MOST_FLOWS]:
            known = result.limit
            if known is None:
                raise AssertionError("every flow of the limit engine has a waterfall")
            title = f"{flow}, variant {name}" if testbed.has_variants else flow
            out.print(grid(stages(title, known.stages)))
            out.print(result.summary, markup=False, soft_wrap=True)
            if known.bound is not None and above_limit.differ(
                result.goodput_bit_per_s, known.bound.bit_per_s
            ):
                out.print(known.bound.summary, markup=False, soft_wrap=True)
            if known.idle_delay_s:
                what = "a segment" if result.kind == "tcp-stream" else "a message"
                idle = duration(known.idle_delay_s)
                out.print(f"idle delay: {what} takes {idle} one way in an idle network")
            out.print()
        if len(every) > MOST_FLOWS:
            out.print(f"{MOST_FLOWS} of {len(every):,} flows are shown; `--json` lists all", markup=False)
