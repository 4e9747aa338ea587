"""`engpass.settings` finds the values that the core uses at a point."""

from __future__ import annotations

from decimal import Decimal

import pytest

import engpass
from engpass import gallery
from engpass.settings import Amount, Settings, join, split

TEXT = """\
[host.a]
[host."b.c"]
[switch.s]
kind = "atm"
[run]
duration = "1 s"
[variant.plain]
[variant.dotted]
"switch.s.output_buffer" = "100 cells"
"host.\\"b.c\\".nic_buffer" = "1 MiB"
[variant.nested]
switch.s.output_buffer = "200 cells"
"""


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("switch.s.discard", ("switch", "s", "discard")),
        ('host."b.c".nic_buffer', ("host", "b.c", "nic_buffer")),
        ("host.'b.c'.cost", ("host", "b.c", "cost")),
        (" a . b ", ("a", "b")),
    ],
)
def test_setting_paths_split_and_join(path: str, parts: tuple[str, ...]) -> None:
    assert split(path) == parts
    assert split(join(parts)) == parts


def test_later_settings_override_earlier_ones() -> None:
    buffer = ("switch", "s", "output_buffer")

    def at(variant: str, *more: tuple[tuple[str, str], ...]) -> str:
        sweep, sets = [*more, (), ()][:2]
        return str(Settings.at(TEXT, variant, sweep, sets).get(*buffer))

    path = "switch.s.output_buffer"
    assert at("plain") == "384 cells"  # the catalogue's default
    assert (at("dotted"), at("nested")) == ("100 cells", "200 cells")
    assert at("dotted", ((path, "300 cells"),)) == "300 cells"
    assert at("dotted", ((path, "300 cells"),), ((path, "400 cells"),)) == "400 cells"


def test_settings_give_names_kinds_and_defaults() -> None:
    settings = Settings.at(TEXT, "dotted", (), ())
    assert settings.names("host") == ["a", "b.c"]
    assert settings.names("nothing") == []
    assert (settings.kind("switch", "s"), settings.kind("host", "a")) == ("atm", "host")
    assert settings.amount("host", "b.c", "nic_buffer") == Amount(Decimal(1), "MiB")
    assert settings.amount("host", "a", "nic_buffer") == Amount(Decimal(512), "KiB")
    assert settings.get("host", "a", "no_such_key") is None
    assert "tail" in settings.choices("switch", "s", "discard")
    assert "oc-3c" in settings.choices("link", "any", "medium")
    assert settings.choices("switch", "s", "output_buffer") == []


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("384 cells", "768 cells"),
        ("0.919 ms", "1.838 ms"),
        ("1_000 B", "2000 B"),
        ("1.50 Mbit/s", "3 Mbit/s"),
    ],
)
def test_amount_is_read_and_doubled(text: str, twice: str) -> None:
    amount = Amount.read(text)
    assert amount is not None
    assert str(amount.times(2)) == twice


def test_invalid_amount_is_none() -> None:
    assert [Amount.read(text) for text in ("tail", "", "12", None, 5, True)] == [None] * 6


def test_settings_of_a_study_equal_those_of_the_core() -> None:
    study = engpass.load(gallery.study("kyoto-1997").testbed)
    path = "circuit.data.shaping"
    settings = Settings.at(study.text, "shaped-18", (("traffic.stream.message", "9 kB"),), ())
    assert settings.get(*split(path)) == "18 %"
    assert settings.get("traffic", "stream", "message") == "9 kB"
    same = engpass.load(gallery.study("kyoto-1997").testbed, set={path: "18 %"})
    there = study.limit(["shaped-18"])["shaped-18"].flows["stream"].goodput_bit_per_s
    assert there == same.limit(["congested"])["congested"].flows["stream"].goodput_bit_per_s


@pytest.mark.parametrize(
    ("one", "other"), [("9 kB", "9000 B"), ("0.01 s", "10 ms"), ("1 min", "60 s"), ("1 GiB", "1024 MiB")]
)
def test_equal_amounts_in_different_units_compare_equal(one: str, other: str) -> None:
    first, second = Amount.read(one), Amount.read(other)
    assert first is not None
    assert second is not None
    assert first.in_base() == second.in_base()


def test_amount_with_a_qualified_unit_is_kept_as_written() -> None:
    line = Amount.read("130 Mbit/s line")
    assert line is not None
    assert line.in_base() == (Decimal(130), "Mbit/s line")
