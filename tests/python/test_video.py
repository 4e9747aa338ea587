"""Video: its schedule on real hosts, and its loss over time as the receiver sees it."""

from __future__ import annotations

import io
import json
import re

from msgspec.structs import replace
from rich.console import Console

import engpass
from engpass.report.figures import over_time
from engpass.show.terminal import print_blocks
from engpass.timeline import losses, timeline
from engpass.types.outcome import DatagramLine, FlowLine
from engpass.views.timeline import view as timeline_view

VIDEO = """\
[host.a]
[host.b]
[router.r]
[link.in]
ends = ["a", "r"]
medium = "ethernet-1g"
[link.out]
ends = ["r", "b"]
medium = "point-to-point"
rate = "10 Mbit/s"
queue = { drop-tail = { limit = "10 packets" } }
[traffic.video]
kind = "video"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
frame_rate = "25 fps"
group_of_pictures = 4
intra_size = "500 %"
[run]
duration = "400 ms"
"""


def test_losses_over_time_are_those_of_each_interval() -> None:
    counts = DatagramLine(received=[0, 8, 16, 20, 30], missing=[0, 2, 2, 8, 6])
    flow = FlowLine(time_s=[0, 1, 2, 3, 4], delivered_bytes=[0, 1, 2, 3, 4], datagrams=counts)
    # The last interval has two late datagrams, which are no longer missing.
    assert losses(flow, 4) == [(0, 1, 0.2), (1, 2, 0.0), (2, 3, 0.6), (3, 4, 0.0)]
    assert losses(flow, 2) == [(0, 2, 2 / 18), (2, 4, 4 / 18)]
    assert losses(replace(flow, datagrams=None), 4) == []


def test_timeline_of_a_video_shows_its_loss() -> None:
    recorded = timeline(engpass.loads(VIDEO, name="video.toml").campaign, "base", (), 0, 11)
    shares = [share for _, _, share in losses(recorded.flows["video"], 10)]
    # A queue of 10 packets loses the last of the 13 datagrams of an intra frame. The next frame shows that.
    assert [share > 0 for share in shares] == [
        False,
        True,
        False,
        False,
        False,
        True,
        False,
        False,
        False,
        True,
    ]
    shown = io.StringIO()
    print_blocks([timeline_view(recorded, "video")], Console(file=shown, width=92))
    (row,) = [line for line in shown.getvalue().splitlines() if line.startswith("loss ")]
    assert re.search(r"max \d+(\.\d)? %", row)
    drawn = over_time.draw(timeline_view(recorded, "video")).to_dict()
    assert '"loss in %"' in json.dumps(drawn)
    assert "the loss as the receiver sees it" in timeline_view(recorded, "video").caption
