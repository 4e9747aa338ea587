"""The headline of each variant: ranges over a sweep, limits, losses, delays, and many flows."""

from msgspec import structs
from msgspec.structs import replace

from engpass.results.aggregate import tabulate
from engpass.testbed import loads
from engpass.types.outcome import Datagrams, FlowOutcome, Receiver, Transfer
from engpass.views.headline import headlines
from report_kyoto import kyoto


def test_a_sweep_is_told_as_its_worst_and_best_value() -> None:
    run, outcomes = kyoto()
    table = tabulate(run, outcomes)
    told = dict(headlines(table))
    assert list(told) == list(table.variants)
    points = [p for p in table.of("stream", "congested") if p.engine == "simulate"]
    worst, best = (pick(points, key=lambda p: p.goodput.value) for pick in (min, max))
    for point in (worst, best):
        assert f"(at {table.axes[0].texts[point.at[0]]})" in told["congested"]
    assert "there " in told["congested"]
    assert "of its limit" in told["congested"]
    assert "no loss" in told["free"]


def flow(goodput: float, lost: int) -> FlowOutcome:
    counts = Datagrams(sent=1000, received=1000 - lost, lost=lost)
    return FlowOutcome(
        kind="udp-stream", goodput_bit_per_s=goodput, offered_bit_per_s=goodput, datagrams=counts
    )


def one_point(flows: dict[str, FlowOutcome]) -> str:
    run, outcomes = kyoto()
    run = replace(run, axes=(), variants=["free"])
    made = structs.replace(outcomes[0], engine="simulate", variant="free", sweep={}, flows=flows)
    ((_, text),) = headlines(tabulate(run, [made]))
    return text


def test_a_flow_with_a_part_of_the_run_is_compared_with_its_bound() -> None:
    text = """
host = { a = {}, b = {} }
link.l = { ends = ["a", "b"], medium = "ethernet-100" }
traffic.late = { kind = "tcp-stream", from = "a", to = "b", message = "64 KiB", start = "2 s" }
run = { duration = "4 s" }
"""
    run = loads(text).run()
    ((_, told),) = headlines(tabulate(run.record, run.outcomes))
    # Its fair share is the whole line, 94.15 Mbit/s, but it has half of the run.
    assert told.startswith("`late` gets 47.07 Mbit/s, 100.0 % of its bound of 47.07 Mbit/s, no loss")


def test_many_flows_are_told_together() -> None:
    flows = {f"f{number}": flow(1e6 * number, 0) for number in range(1, 5)}
    assert one_point(flows) == "4 flows get 10.00 Mbit/s together, 1.00 to 4.00 Mbit/s each, no loss."
    flows = {f"f{number}": flow(1e6, number) for number in range(1, 5)}
    assert one_point(flows) == "4 flows get 4.00 Mbit/s together, equal shares, up to 0.4 % lost."


def test_a_group_counts_by_its_receivers() -> None:
    figures = {
        name: structs.replace(flow(1e6 * number, 0), kind="multicast")
        for number, name in enumerate(("x", "y", "z"), 1)
    }
    receivers = {
        name: Receiver(goodput_bit_per_s=one.goodput_bit_per_s, offered_bit_per_s=one.offered_bit_per_s)
        for name, one in figures.items()
    }
    text = one_point({"tv": structs.replace(figures["x"], receivers=receivers), "call": flow(4e6, 0)})
    said = "10.00 Mbit/s together, 1.00 to 4.00 Mbit/s each, no loss."
    assert text == f"2 flows to 4 receivers get {said}"
    alone = one_point({"tv": structs.replace(figures["x"], receivers=receivers)})
    assert alone.startswith("1 flow to 3 receivers gets 6.00 Mbit/s together, ")


def test_few_flows_are_told_one_by_one() -> None:
    text = one_point({"a": flow(1e6, 0), "b": flow(2e6, 20)})
    assert text == "`a` gets 1.00 Mbit/s, no loss; `b` gets 2.00 Mbit/s, 2.0 % lost."


def test_transfers_that_end_are_told_by_their_times() -> None:
    def transfer(seconds: float) -> FlowOutcome:
        return replace(flow(1e6, 0), transfer=Transfer(received_bytes=1000, duration_s=seconds))

    flows = {f"f{number}": transfer(0.01 * number) for number in range(1, 5)}
    told = one_point(flows)
    assert told.startswith(
        "4 flows get 4.00 Mbit/s together, transfers take 25 ms (median) to 40 ms (longest), "
    )
    assert one_point({"f": transfer(0.5)}).startswith("`f` gets 1.00 Mbit/s, its transfer takes 500 ms, ")
    # A flow that does not end has only a goodput.
    assert "1.00 to 5.00 Mbit/s each" in one_point({**flows, "endless": flow(5e6, 0)})
