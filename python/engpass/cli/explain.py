"""`engpass explain`: explains one point of a run with its ledger, its bottleneck and changes that help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engpass.cli import console, files, options

if TYPE_CHECKING:
    from engpass.explain.select_point import Chosen
    from engpass.explanation import Explanation

Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Id of a run (or its first characters), `last`, or a testbed file to simulate."
    ),
]
Variant = Annotated[str | None, typer.Option("--variant", metavar="NAME", help="The variant to explain.")]
Point = Annotated[
    list[str] | None,
    typer.Option("--point", metavar="PATH=VALUE", help='A swept value, as in traffic.stream.message="9 kB".'),
]
Flow = Annotated[str | None, typer.Option("--flow", metavar="NAME", help="The flow to explain.")]
Timeline = Annotated[
    bool, typer.Option("--timeline", help="Also show windows, data in flight, queues and events over time.")
]
Report = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Also write it as an HTML page with figures.")
]
Advice = Annotated[
    bool, typer.Option("--advice/--no-advice", help="Simulate changes and list those that help (slow).")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, help="Parallel jobs (default: number of cores)."),
]


def command(
    run: Run = "last",
    variant: Variant = None,
    point: Point = None,
    flow: Flow = None,
    set_: options.Set = None,
    timeline: Timeline = False,
    advice: Advice = True,
    report: Report = None,
    jobs: Jobs = None,
    store: options.StoreAt = options.STORE,
    as_json: options.Json = False,
    yes: options.Memory = False,
) -> None:
    """Explain a point: how the line was used, what limits the flow, and which changes help.

    Without --point, --variant and --flow, the command selects the point and flow with the worst goodput, loss
    and delay together. Every listed change was simulated with the same seeds.
    """
    from engpass.explanation import explain

    if report is not None:
        files.html(report)

    def choose(most: int | None) -> Chosen:
        with console.waiting("reading the points"):
            return _chosen(run, variant, point or [], flow, store, set_, most)

    chosen = console.agreed(yes, choose)

    def work(most: int | None) -> Explanation:
        with console.waiting("simulating changes" if advice else "simulating") as status:
            return explain(
                chosen,
                advice=advice,
                with_timeline=timeline,
                jobs=jobs,
                watch=lambda done: status(f"simulating changes: {done}"),
                max_memory=most,
            )

    made = console.agreed(yes, work)
    if as_json:
        console.line(made.to_json())
    else:
        from engpass.show.terminal import print_blocks
        from engpass.views.explanation import view

        print_blocks(view(made), console.tables())
    if report is not None:
        from engpass.report import render_explanation

        files.write(Path(report), render_explanation(made))
        console.tell(f"the explanation is in `{report}`")


def _chosen(
    run: str,
    variant: str | None,
    point: list[str],
    flow: str | None,
    store: str,
    set_: list[str] | None,
    max_memory: int | None,
) -> Chosen:
    from engpass.explain.select_point import choose, choose_in

    if run == "-" or run.endswith(".toml") or Path(run).is_file():
        from engpass.testbed import load

        testbed = load(run, options.overrides(set_))
        return choose_in(testbed, variant, point, flow, max_memory=max_memory)
    if set_:
        console.fail(
            "`--set` works only with a testbed file, not with a stored run",
            "give the file instead of the run",
        )
    from engpass.store import Store

    with Store.open(store, create=False) as opened:
        return choose(opened, opened.run(run), variant, point, flow)
