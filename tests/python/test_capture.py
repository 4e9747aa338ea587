"""Captures of a run: options, files and errors."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import Cli
from engpass import gallery

ONE = ("--engine", "simulate", "--variant", "plain", "--set", "traffic.stream.message=2 kB", "--repeats", "1")


def blocks(path: Path) -> list[tuple[int, bytes]]:
    """Kinds and bodies of the blocks of a pcapng file."""
    data, found = path.read_bytes(), []
    while data:
        kind, length = struct.unpack_from("<II", data)
        assert struct.unpack_from("<I", data, length - 4) == (length,)
        found.append((kind, data[8 : length - 4]))
        data = data[length:]
    return found


def packets(path: Path) -> int:
    return sum(kind == 6 for kind, _ in blocks(path))


def test_capture_contains_what_the_link_carried(cli: Cli, testbed_file: Path) -> None:
    both, cells = testbed_file.parent / "both.pcapng", testbed_file.parent / "cells.pcapng"
    shown = cli("run", testbed_file.name, *ONE, "--json", "--capture", f"link.wire={both.name}")
    (outcome,) = [json.loads(line) for line in shown.stdout.splitlines()]
    sent = outcome["links"]["wire"]["directions"][0]["cells"]["sent"]
    assert f"captured {packets(both):,} to `both.pcapng`" in shown.stderr
    # A message of 2 kB takes 43 cells with its headers.
    assert sent > 43
    assert packets(both) == sent // 43
    assert sum(kind == 1 for kind, _ in blocks(both)) == 2
    cli("run", testbed_file.name, *ONE, "--capture", f"link.wire.a={cells.name}", "--capture-as", "cells")
    assert packets(cells) == sent


def test_capture_reruns_a_stored_point(cli: Cli, testbed_file: Path) -> None:
    again = (
        "run",
        testbed_file.name,
        *ONE,
        "--capture",
        "link.wire=w.pcapng",
        "--capture-limit",
        "3 packets",
    )
    for _ in range(2):
        shown = cli(*again)
        assert "captured 3 to `w.pcapng` (limit reached)" in shown.stderr
        (testbed_file.parent / "w.pcapng").unlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--engine", "simulate", "--capture", "link.wire=w"),
            (
                "a capture needs exactly one run, but there are 16\nhelp: select one with `--variant plain`,"
                " `--set traffic.stream.message='1 kB'`, `--repeats 1`"
            ),
        ),
        (
            ("--engine", "limit", "--capture", "link.wire=w"),
            "limit cannot capture packets\nhelp: use `--engine simulate` or `--engine emulate`",
        ),
        ((*ONE, "--capture", "link.wire"), "`--capture link.wire` has no file name\nhelp: write"),
        ((*ONE, "--capture", "link.wir=w"), "the testbed has no `link.wir`\nhelp: it has `link.wire`"),
        (
            (*ONE, "--capture", "link.wire.c=w"),
            "`c` is not an end of link `wire`\nhelp: it joins `a` and `b`",
        ),
        (
            (*ONE, "--capture", "link.wire=w", "--capture-as", "frames"),
            "link `wire` cannot be captured as `frames`",
        ),
        (
            (*ONE, "--capture", "link.wire=w", "--capture-limit", "few"),
            "`few` is not a limit of a capture\nhelp: give a number of packets",
        ),
        (
            (*ONE, "--capture", "link.wire=w", "--capture", "link.wire.a=./w"),
            "`w` cannot be the capture of `link.wire` and the capture of `link.wire.a` at once",
        ),
        (
            (*ONE, "--capture", "link.wire=lan.toml"),
            "`lan.toml` cannot be the testbed and the capture of `link.wire` at once\nhelp: use",
        ),
        (
            (*ONE, "--store", "w", "--capture", "link.wire=w"),
            "`w` cannot be the store and the capture of `link.wire` at once",
        ),
        ((*ONE, "--capture", "link.wire=no/w"), "there is no directory for `no/w`"),
        ((*ONE, "--capture-as", "cells"), "`--capture` is missing\nhelp: add `--capture"),
    ],
)
def test_wrong_capture_options_are_rejected(
    cli: Cli, testbed_file: Path, arguments: tuple[str, ...], message: str
) -> None:
    shown = cli("run", testbed_file.name, *arguments, code=2)
    assert message in shown.stderr
    assert not (testbed_file.parent / "w").exists()


def test_output_files_never_overwrite_each_other(cli: Cli, testbed_file: Path) -> None:
    """The check comes before the run and follows symbolic and hard links."""
    text, name = testbed_file.read_text(), testbed_file.name
    (testbed_file.parent / "link").symlink_to(name)
    (testbed_file.parent / "hard").hardlink_to(testbed_file)
    for arguments, told in (
        (("--log", name), "the testbed and the log"),
        (("--log", "link"), "the testbed and the log"),
        (("--log", "hard"), "the testbed and the log"),
        (("--capture", f"link.wire={name}"), "the testbed and the capture of `link.wire`"),
        (("--capture", "link.wire=w", "--log", "./w"), "the log and the capture of `link.wire`"),
    ):
        shown = cli("up", name, "--engine", "emulate", *arguments, code=2).stderr
        assert f" cannot be {told} at once\nhelp: use a separate file for each" in shown
    one = (
        "--engine",
        "emulate",
        "--variant",
        "plain",
        "--set",
        "traffic.stream.message=2 kB",
        "--repeats",
        "1",
    )
    shown = cli("run", name, *one, "--log", "d", "--capture", "link.wire=d/point-000000.log", code=2).stderr
    assert "there is no directory for" in shown
    (testbed_file.parent / "d").mkdir()
    shown = cli("run", name, *one, "--log", "d", "--capture", "link.wire=d/point-000000.log", code=2).stderr
    assert "cannot be the capture of `link.wire` and the log of a point at once" in shown
    assert testbed_file.read_text() == text
    assert not any((testbed_file.parent / name).exists() for name in ("w", "d/point-000000.log"))


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (
            "/proc/x",
            "logs cannot be written into `/proc/x`: No such file or directory\nhelp: check the",
        ),
        ("TESTBED", "is a file, but every point needs a separate log\nhelp: give a directory"),
    ],
)
def test_log_directory_that_cannot_be_made_is_an_error(
    cli: Cli, testbed_file: Path, log: str, told: str
) -> None:
    there = ("--engine", "emulate", "--variant", "plain", "--log")
    shown = cli("run", testbed_file.name, *there, log.replace("TESTBED", testbed_file.name), code=2)
    assert told in shown.stderr


def test_capture_point_name_with_equals_sign_needs_quotes(cli: Cli, testbed_file: Path) -> None:
    text = testbed_file.read_text().replace("[link.wire]", '[link."a=b.c"]')
    testbed_file.write_text(text.replace('"link.wire.medium"', "'link.\"a=b.c\".medium'"))
    one = ("run", testbed_file.name, *ONE, "--set", 'link."a=b.c".delay=1 us')
    cli(*one, "--capture", 'link."a=b.c"=x=y.pcapng', "--capture", "link.'a=b.c'.a=z.pcapng")
    both, single = (packets(testbed_file.parent / name) for name in ("x=y.pcapng", "z.pcapng"))
    assert 0 < single <= both
    said = cli(*one, "--capture", "link.a=b.c=x.pcapng", code=2).stderr
    assert 'the testbed has no `link.a`\nhelp: it has `link."a=b.c"`; put a name with `=` in quotes' in said
    said = cli(*one, "--capture", 'link."a=b.c".x=x.pcapng', code=2).stderr
    assert "`x` is not an end of link `a=b.c`" in said


def test_full_disk_during_a_capture_fails_the_point(cli: Cli, testbed_file: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    shown = cli("run", testbed_file.name, *ONE, "--capture", "link.wire=/dev/full", code=1)
    assert "the capture `/dev/full` cannot be written: No space left on device" in shown.stderr
    assert "`--capture-limit` limits its size" in shown.stderr


def test_tshark_reads_a_capture(cli: Cli, testbed_file: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("there is no tshark")
    cli("run", testbed_file.name, *ONE, "--capture", "link.wire=wire.pcapng")
    command = ["tshark", "-n", "-r", "wire.pcapng", "-T", "fields", "-e", "udp.length", "-e", "_ws.malformed"]
    read = subprocess.run(command, cwd=testbed_file.parent, capture_output=True, text=True, check=True)
    lengths = read.stdout.split()
    assert lengths
    assert set(lengths) == {"2008"}


FIELDS = ("ip.id", "ip.len", "ip.ttl", "ip.flags.mf", "ip.frag_offset", "ip.checksum.status", "_ws.malformed")


def seen(path: Path, *filters: str) -> list[tuple[str, ...]]:
    """Fields of the IP packets of a capture, in order, as tshark prints them."""
    asked = [word for field in FIELDS for word in ("-e", field)]
    checks = ("-o", "ip.check_checksum:TRUE", "-o", "ip.defragment:FALSE")
    read = subprocess.run(
        ["tshark", "-n", "-r", str(path), *checks, *filters, "-T", "fields", *asked],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [tuple(line.split("\t")) for line in read.stdout.splitlines()]
    assert all(row[-2:] == ("1", "") for row in rows), "each checksum is good, and nothing is malformed"
    return [row[:-2] for row in rows]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="there is no tshark")
@pytest.mark.parametrize(("variant", "pieces"), [("shaped", 1), ("small-mtu", 3)])
def test_packets_captured_in_cells_equal_those_on_ethernet(cli: Cli, variant: str, pieces: int) -> None:
    """Each router decrements the TTL; the first one fragments, and none reassembles."""
    places = ("link.lan.office", "link.trunk.west", "link.remote-lan.far")
    files = [cli.directory / f"{number}.pcapng" for number in range(len(places))]
    captures = [f"--capture={place}={file}" for place, file in zip(places, files, strict=True)]
    values = ("traffic.stream.rate=30 Mbit/s", "traffic.video.rate=1 Mbit/s cells", "run.duration=60 ms")
    given = [word for value in (*values, "run.warmup=0 s") for word in ("--set", value)]
    study = str(gallery.study("backbone").testbed)
    cli("run", study, "--engine", "simulate", "--variant", variant, *given, *captures)
    first, cells, last = (seen(file, "-Y", "ip.src == 10.64.0.1 && ip.dst == 10.64.0.2") for file in files)
    assert len(first) > 100
    assert {row[2] for row in first} == {"64"}
    assert {row[2] for row in cells} == {"63"}
    assert {row[2] for row in last} == {"62"}
    # Packets in flight at the end of the run are missing on later lines.
    assert pieces * len(first) - len(cells) < 3 * pieces
    assert len(cells) - len(last) < 20 * pieces
    assert {row[1] for row in first} == {"1500"}
    lengths = ["1500"] if pieces == 1 else ["572", "572", "396"]
    cut = [(row[0], length) for row in first for length in lengths]
    assert [row[:2] for row in cells] == cut[: len(cells)]
    assert [(*row[:2], *row[3:]) for row in last] == [(*row[:2], *row[3:]) for row in cells[: len(last)]]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="there is no tshark")
def test_captures_contain_arp_requests_and_replies(cli: Cli) -> None:
    """A request also crosses the line of a station without traffic; only the requested station replies."""
    study = str(gallery.study("arp").testbed)
    files = {link: cli.directory / f"{link}.pcapng" for link in ("segment", "other")}
    captures = [f"--capture=link.{link}={file}" for link, file in files.items()]
    cli("run", study, "--engine", "simulate", "--variant", "ageing", *captures)
    fields = ("arp.opcode", "arp.src.proto_ipv4", "arp.dst.proto_ipv4", "frame.len", "_ws.malformed")
    asked = [word for field in fields for word in ("-e", field)]
    found = {}
    for link, file in files.items():
        command = ["tshark", "-n", "-r", str(file), "-Y", "arp", "-T", "fields", *asked]
        read = subprocess.run(command, capture_output=True, text=True, check=True)
        found[link] = [line.split("\t") for line in read.stdout.splitlines()]
    request, reply = ["1", "10.64.0.5", "10.64.0.2", "60", ""], ["2", "10.64.0.2", "10.64.0.5", "60", ""]
    assert found == {"segment": 10 * [request, reply], "other": 10 * [request]}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="there is no tshark")
def test_captures_contain_multicast_in_gre(cli: Cli) -> None:
    """In the tunnel a packet of the group is inside; `edge` has decremented its time to live."""
    cards, file = Path(__file__).parents[1] / "data/cards.toml", cli.directory / "wan.pcapng"
    cli("run", str(cards), "--engine", "simulate", f"--capture=link.wan={file}")
    fields = ("ip.src", "ip.dst", "ip.ttl", "ip.len", "ip.proto", "gre.proto", "_ws.malformed")
    asked = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(file), "-T", "fields", *asked]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [line.split("\t") for line in read.stdout.splitlines()]
    # 50 packets in each of 2.2 s.
    assert len(found) == 110
    inner = ["10.64.0.6,10.64.0.1", "10.64.0.7,239.1.1.2", "64,7", "1052,1028", "47,17", "0x0800", ""]
    assert all(row == inner for row in found), found[0]
