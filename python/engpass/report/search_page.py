"""The page about a search, or about a measured path."""

from engpass import formatting
from engpass.formatting import duration, percent, rate
from engpass.jsondata import Json
from engpass.report import theme
from engpass.report.charts import Spec, for_page
from engpass.report.figures.base import Block, Drawing
from engpass.report.search import OUTCOMES, PATH_SERIES, figures, outcome, path_figures
from engpass.report.sections import block_key, entry_list, file_section
from engpass.search.found import Found, found, tried
from engpass.show.markup import esc
from engpass.show.markup import table as html_table
from engpass.store import RunRecord

_PATH = "rfc6349"

_SAYS = {
    "loss": "Each mark is a trial; the line shows the loss over all trials of a load.",
    "received": "On the dashed line, the received rate equals the offered rate.",
    "steps": "Earlier trials decide the next load. Dashed lines are the results of the search.",
    "windows": "A window can fill the path if it is at least the bandwidth-delay product. The dashed line "
    "is the ideal TCP throughput: the bottleneck bandwidth without the headers of TCP and IP.",
}


def drawings(record: RunRecord) -> dict[str, Drawing]:
    """The figures by name."""
    if record.method == _PATH:
        return path_figures(record)
    return figures([record]) if record.trials else {}


def charts(record: RunRecord) -> dict[str, Spec]:
    """The charts of `drawings` as specifications for the page."""
    return {name: for_page(chart.to_dict()) for name, chart in drawings(record).items()}


def sections(record: RunRecord) -> list[tuple[str, str, str]]:
    """Key, title and body of the sections; the page omits sections with an empty body."""
    first = _path_sections(record) if record.method == _PATH else _search_sections(record)
    told: list[tuple[str, Json]] = [
        ("engine", record.engine),
        ("variant", record.variant),
        ("traffic", record.traffic),
        ("method", record.method),
        *(
            _told(key, value)
            for key, value in record.settings.items()
            if value is not None and key != "goals"
        ),
    ]
    return [
        *first,
        ("asked", "Settings", entry_list(told)),
        ("environment", "Environment", entry_list(record.environment.items())),
        ("file", "Testbed file", file_section(record)),
    ]


def sentence(record: RunRecord) -> str:
    """The result in a sentence or two."""
    result = record.result
    if result is None:
        return f"This search has not ended; {len(record.trials)} trials are done."
    if record.method == _PATH:
        return (
            f"From `{record.settings['from']}` to `{record.settings['to']}` packets of "
            f"{result['mtu_bytes']:,} B pass, a round trip takes {duration(result['rtt_s'])}, "
            "and the bottleneck carries "
            f"{rate(result['bandwidth_bit_per_s'])} of IP. The bandwidth-delay product is "
            f"{result['bdp_bytes']:,.0f} B; TCP can reach at most "
            f"{rate(result['ideal_bit_per_s'])} of payload."
        )
    what = found(record) or Found()
    if what.goals is not None:
        return " ".join(
            f"{_up_to(one.goal.loss_ratio)} `{record.traffic}` carries "
            f"{rate(one.conditional_throughput_bit_per_s) or 'none of the tried loads'} of payload"
            f"{'' if one.regular else f' (irregular: {one.why})'}."
            for one in what.goals
        )
    clean = what.highest_clean_bit_per_s if what.finished is None else what.throughput_bit_per_s
    if clean is None:
        return f"All tried loads of `{record.traffic}` have loss."
    return f"`{record.traffic}` carries {rate(clean)} of payload without loss."


def _up_to(loss: float) -> str:
    return f"With up to {percent(loss)} loss" if loss else "Without loss"


def _told(key: str, value: Json) -> tuple[str, Json]:
    """The name and the text of a setting; the unit is the suffix of its key."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if key.endswith("_bit_per_s"):
            return key.removesuffix("_bit_per_s"), rate(value)
        if key.endswith("_s"):
            return key.removesuffix("_s"), f"{value:g} s"
    if isinstance(value, list):
        return key, ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in value)
    return key, f"{value:g}" if isinstance(value, float) else value


def _box(name: str, key: str) -> str:
    says = _SAYS[name]
    return (
        f'<div class="figures"><figure class="whole" id="figure-{name}">{key}'
        f'<div class="chart" data-chart="{name}" role="img" aria-label="{esc(says)}"></div>'
        f"<figcaption>{esc(says)}</figcaption></figure></div>"
    )


def _search_sections(record: RunRecord) -> list[tuple[str, str, str]]:
    kinds = {outcome(trial) for trial in tried(record)}
    key = block_key(
        Block(theme.colour(place), name) for kind, (name, place) in OUTCOMES.items() if kind in kinds
    )
    curves = _box("loss", "") + _box("received", "") if record.trials else ""
    return [
        ("found", "Results", _found(record) + _warnings(record)),
        ("loss-against-load", "Loss against load", curves),
        ("steps", "Steps", (_box("steps", key) if record.trials else "") + _trials(record)),
    ]


def _warnings(record: RunRecord) -> str:
    result = record.result or {}
    warnings = []
    if invalid := result.get("invalid_trials", result.get("invalid_runs")):
        warnings.append(
            '<span class="badge bad">invalid</span> Packets of the emulated network were too late in '
            f"{invalid} of the trials, so the results do not describe the network."
        )
    warnings += [
        f'<span class="badge mark">not conforming</span> {esc(one)}' for one in result.get("departures", [])
    ]
    warnings += [esc(one) for one in result.get("notes", [])]
    return "".join(f"<p>{one}</p>" for one in warnings)


def _found(record: RunRecord) -> str:
    result = found(record)
    if result is None:
        return "<p>The search has not ended; repeat the command to continue it.</p>"
    if result.goals is not None:
        rows = [
            [
                percent(one.goal.loss_ratio),
                f"{one.goal.final_trial_s:g} s",
                f"{one.goal.duration_sum_s:g} s",
                percent(one.goal.exceed_ratio),
                rate(one.lower_bit_per_s),
                rate(one.upper_bit_per_s),
                rate(one.conditional_throughput_bit_per_s),
                "regular" if one.regular else f'<span class="bad">irregular: {esc(one.why)}</span>',
            ]
            for one in result.goals
        ]
        head = [
            "Goal loss ratio",
            "Final trial",
            "Duration sum",
            "Exceed ratio",
            "Lower bound",
            "Upper bound",
        ]
        head += ["Conditional throughput", "Result"]
        caption = f"MLRsearch (RFC 9971): {result.trials} trials, {result.trial_seconds:g} s of traffic"
        return html_table(caption, head, rows, numeric=range(7), kind="cards")
    if result.finished is not None:
        lossy = result.lowest_lossy_bit_per_s
        rows = [["throughput", rate(result.throughput_bit_per_s) or "none: all loads have loss"]]
        rows.append(["lowest load with loss", rate(lossy) or "none was tried"])
        rows.append(["ended", "yes" if result.finished else "early, at the time limit"])
        return html_table("Throughput (RFC 2544 section 26.1)", ["Result", "Value"], rows, kind="cards")
    clean = rate(result.highest_clean_bit_per_s) or "none was tried"
    rows = [["highest load without loss", clean]]
    return html_table("Frame loss (RFC 2544 section 26.3)", ["Result", "Value"], rows, kind="cards")


def _trials(record: RunRecord) -> str:
    outcomes = [OUTCOMES[outcome(trial)][0] for trial in tried(record)]
    made = formatting.trials(list(zip(record.trials, outcomes, strict=True)))
    rows = [[esc(cell) for cell in row] for row in made]
    head = ["Trial", "Offered", "Duration", "Sent", "Lost", "Loss", "Received", "Outcome"]
    return html_table("All trials", head, rows, numeric=range(7), kind="tall") if rows else ""


def _path_sections(record: RunRecord) -> list[tuple[str, str, str]]:
    result = record.result
    if result is None:
        return [("found", "The path", "<p>The measurement has not ended.</p>")]
    rows = formatting.path(result)
    path = html_table("The path (RFC 6349)", ["Result", "Value", "Source"], rows, numeric=(1,), kind="cards")
    key = block_key(Block(theme.colour(place), name) for _, name, place in PATH_SERIES)
    transfers = [[esc(cell) for cell in formatting.transfer(one)] for one in result["transfers"]]
    head = ["Window (share of BDP)", "Requested", "Granted", "Expected", "Achieved"]
    head += ["Transfer time ratio (4.1)", "TCP efficiency (4.2)", "Buffer delay (4.3)"]
    shared = result.get("connections", 1)
    caption = (
        "Transfers" if shared == 1 else f"Transfers, each over {shared} connections that share its window"
    )
    table = html_table(caption, head, transfers, numeric=range(8), kind="cards")
    return [
        ("found", "The path", path + _warnings(record)),
        ("tcp", "TCP over the path", _box("windows", key) + table),
    ]
