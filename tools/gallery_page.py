"""Write the tables in the pages of the gallery: `make pages`.

A page has the markers `<!-- claims -->` (the table of claims) and `<!-- curves: 1 kB, 2 kB -->` (goodput
per variant at these swept values). The content of each ends at `<!-- end -->`. If several paths are swept,
`<!-- curves where PATH = VALUE: 50 MB/s, 100 MB/s -->` fixes the other one. Goodput is in MB/s if the swept
values are. The figures come from a full reproduction in the store of the working directory. Missing runs are
made first.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence

from engpass.campaign import Plan
from engpass.claims import KINDS, Campaign, Judged, summed
from engpass.claims.expectation import expectation, heading
from engpass.gallery import Study, studies
from engpass.progress import bar
from engpass.reproduce import prepare
from engpass.store import Store


def claims_table(judged: Sequence[Judged], notes: Sequence[str]) -> str:
    """Return the claims as Markdown: a table per kind, a summary of the verdicts, the notes of the study."""
    has_text = any(one.claim.printed for one in judged)
    parts = []
    for kind, meaning in KINDS.items():
        of_kind = [one for one in judged if one.claim.kind == kind]
        if of_kind:
            name = heading(
                stated=any(one.claim.published for one in of_kind),
                expected=any(one.claim.value for one in of_kind),
            )
            rows = [cells(one, name) for one in of_kind]
            head = [name for name in rows[0] if has_text or name != "Printed"]
            table = [head, ["---"] * len(head), *([row[name] for name in head] for row in rows)]
            lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
            parts.append(f"**{kind}**: {meaning}\n\n" + "\n".join(lines))
    parts.append(f"{summed([one.status for one in judged])}.")
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts)


def cells(one: Judged, expected: str) -> dict[str, str]:
    """Return the row of a claim by column; `expected` is the heading of the stated or expected value."""
    claim, measure = one.claim, one.claim.measure
    statement = claim.statement
    if claim.reason:
        statement += f" (why not: {claim.reason})"
    if claim.decided_by:
        statement += f" (decided by: {claim.decided_by})"
    return {
        "Statement": statement,
        expected: expectation(claim.kind, claim.published, claim.value),
        "Printed": f"{claim.section}: {claim.printed}" if claim.printed else "",
        "Obtained": one.verdict.obtained if one.verdict else "",
        "Holds if": measure.tolerance if measure else "",
        "Holds": {"holds": "yes", "known difference": "no, known", "open": "open"}.get(one.status, "**no**"),
        "Fails with": f"`{' = '.join(claim.breaks)}`" if claim.breaks else "",
    }


def curves_table(
    campaign: Campaign, plan: Plan, flow: str, wanted: Sequence[str], where: Mapping[str, str]
) -> str:
    """Return goodput at the named swept values by variant, from `simulate` or the plan's first engine."""
    engine = "simulate" if "simulate" in plan.engines else plan.engines[0]
    curves = [campaign.curve(engine, name, flow, "goodput", where) for name in plan.variants]
    in_bytes = curves[0].x_unit == "B/s"
    axis = next(axis for axis in plan.axes if axis.path not in where)
    head = "Message" if axis.path.endswith(".message") else axis.path.split(".", 2)[-1].replace(".", " ")
    rows = [
        f"| {head.capitalize()} | " + " | ".join(f"`{name}`" for name in plan.variants) + " |",
        "|---:" * (len(plan.variants) + 1) + "|",
    ]
    for sample in curves[0].samples:
        if sample.text in wanted:
            values = [curve.at(sample.x).value / (8e6 if in_bytes else 1e6) for curve in curves]
            rows.append(f"| {sample.text} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    return "\n".join(rows)


def fill(page: str, claims: str, curves: Callable[[Sequence[str], Mapping[str, str]], str]) -> str:
    """Return the page with new content at its markers."""

    def place(found: re.Match[str]) -> str:
        begin, what, path, value, names = found.groups()
        where = {path: value} if path else {}
        table = claims if what == "claims" else curves([name.strip() for name in names.split(",")], where)
        return f"{begin}\n{table}\n<!-- end -->"

    begin = r"(<!-- (claims|curves)(?: where ([^ >]+) = ([^:>]+))?(?:: ([^>]*?))? -->)"
    return re.sub(begin + r"\n.*?<!-- end -->", place, page, flags=re.DOTALL)


def write(study: Study) -> bool:
    """Reproduce a study in full and write its page; return whether all claims are as its file expects."""
    made = prepare(study)
    with Store.open("engpass.db") as store, bar(sys.stderr) as shown:
        ran = made.run(store, watch=shown)
        if ran.interrupted or ran.failed:
            sys.exit(f"{study.name}: interrupted, or points failed")
        judged = made.judge(store, ran)
        main = next(part for part in made.parts if part.spec.name == "main")
        campaign = Campaign(main.testbed.axes, store.outcomes(ran.records["main"].id))
    flow = next(claim.measure.flow for claim in made.claims.claims if claim.measure)
    page = fill(
        study.page.read_text(encoding="utf-8"),
        claims_table(judged, made.claims.notes),
        lambda wanted, where: curves_table(campaign, main.plan, flow, wanted, where),
    )
    study.page.write_text(page, encoding="utf-8")
    return all(one.status not in ("fails", "holds after all") for one in judged)


def main() -> int:
    """Write the pages of the named studies, or of all; return 1 if a claim is not as expected."""
    wanted = sys.argv[1:]
    held = [write(study) for study in studies() if not wanted or study.name in wanted]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
