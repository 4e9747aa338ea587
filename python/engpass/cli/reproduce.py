"""`engpass reproduce`: runs a study of the gallery and checks its claims."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engpass.cli import console, files, options

if TYPE_CHECKING:
    from engpass.claims import Judged
    from engpass.reproduce import Ran, Reproduction
    from engpass.store import Store

Study = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study of `engpass gallery`, or a directory with one.")
]
Report = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Also write the HTML report, with the claims.")
]
Repeats = Annotated[
    int | None, typer.Option("--repeats", min=1, help="Repeats of every point (default: of the study).")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, help="Parallel jobs (default: number of cores)."),
]


def command(
    study: Study,
    as_json: options.Json = False,
    report: Report = None,
    store: options.StoreAt = options.STORE,
    jobs: Jobs = None,
    repeats: Repeats = None,
    set_: options.Set = None,
    yes: options.Yes = False,
) -> None:
    """Run a study and check its claims: stated value, obtained value and verdict, by kind of claim.

    Stored points are not run again. Exit code 1 if a claim fails that is expected to hold, 5 if more memory
    is needed than allowed, 130 after Ctrl-C, otherwise 0: known differences and open claims are shown but do
    not fail the command.
    """
    from engpass import gallery
    from engpass.claims import counted
    from engpass.reproduce import prepare
    from engpass.store import Store

    limit = options.max_points(yes)
    made = prepare(gallery.study(study), options.overrides(set_), repeats, limit)
    target = None if report is None else files.target(files.html(report))
    with Store.open(store) as opened:
        ran = console.agreed(yes, lambda most: _run(made, opened, jobs, most))
        if ran.interrupted:
            done = sum(record.points_done for record in ran.records.values())
            console.tell(
                f"interrupted: {done:,} of {made.total:,} points are stored in `{opened.where}`\n"
                "help: repeat the command to continue where it stopped"
            )
            raise typer.Exit(console.INTERRUPTED)
        if ran.failed:
            from engpass.cli.run import tell_failures

            for record in ran.failed:
                tell_failures(opened, record)
            console.tell("help: without these points the claims cannot be checked")
            raise typer.Exit(console.FAILED)
        judged = made.judge(opened, ran)
        if target is not None:
            files.write(target, made.report(opened, ran, judged))
    if as_json:
        told = [one.to_json() for one in judged]
        notes = list(made.claims.notes)
        console.line({"study": made.study.name, "claims": told, "counts": counted(judged), "notes": notes})
    else:
        from engpass.show.blocks import Prose
        from engpass.show.terminal import print_blocks
        from engpass.views.claims import counts, view

        about = [Prose(made.claims.title, strong=True), Prose(made.claims.reference)]
        found = view([one.to_json() for one in judged], made.claims.notes)
        print_blocks([*about, *found, counts(counted(judged))], console.tables())
    if target is not None:
        console.tell(f"report written to `{target}`")
    held = _say(judged)
    raise typer.Exit(console.OK if held else console.FAILED)


def _run(made: Reproduction, store: Store, jobs: int | None, max_memory: int | None) -> Ran:
    from engpass.progress import bar

    console.tell(f"{made.study.name}: {made.total:,} points, stored in `{store.where}`")
    with bar(sys.stderr) as shown:
        return made.run(store, jobs=jobs, watch=shown, max_memory=max_memory)


def _say(judged: list[Judged]) -> bool:
    """Print a summary of the verdicts; returns True if no claim fails."""
    from engpass.claims import summed

    console.tell(summed([one.status for one in judged]))
    for one in judged:
        if one.status == "holds after all":
            console.tell(
                f"`{one.claim.id}` holds, but the claims file does not expect it\n"
                "help: remove `expected = false` and `reason`, and add `breaks`"
            )
    broken = [one.claim.id for one in judged if one.status == "fails"]
    if broken:
        names = ", ".join(f"`{name}`" for name in broken)
        verb = "does" if len(broken) == 1 else "do"
        console.tell(f"{names} {verb} not hold")
    return not broken
