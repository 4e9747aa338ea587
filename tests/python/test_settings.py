"""`engpass.settings` finds the values that the core uses at a point."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engpass.settings import Amount, Setting, Settings, join, split
from engpass.testbed import loads

TEXT = """\
[host.a]
[host."b.c"]
cost.per_byte = "2 ns"
[switch.s]
kind = "atm"
[run]
duration = "1 s"
[variant.plain]
[variant.dotted]
"switch.s.output_buffer" = "100 cells"
"host.\\"b.c\\".nic_buffer" = "1 MiB"
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


def test_settings_of_a_testbed_are_those_of_the_core() -> None:
    testbed = loads(TEXT)
    settings = Settings.at(testbed.campaign, "dotted", ())
    assert settings.names("host") == ["a", "b.c"]
    assert settings.names("switch") == ["s"]
    assert settings.names("nothing") == settings.names("router") == []
    assert (settings.kind("switch", "s"), settings.kind("switch", "s", "discard")) == ("atm", "tail")
    assert settings.get("switch", "s", "output_buffer") == "100 cells"
    assert settings.amount("host", "b.c", "nic_buffer") == Amount(Decimal(1), "MiB")
    assert settings.amount("host", "a", "nic_buffer") == Amount(Decimal(512), "KiB")
    assert settings.get("host", "a", "memory") is None
    assert settings.find("host", "a", "no_such_key") is None
    assert settings.get("host", "b.c", "cost") == {"per_byte": "2 ns"}
    assert settings.find("host", "a", "tcp", "mss") == Setting()
    assert "tail" in settings.choices("switch", "s", "discard")
    assert settings.choices("switch", "s", "output_buffer") == []
    assert Settings.at(testbed.campaign, None, ()).get("switch", "s", "output_buffer") == "384 cells"


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
    assert [Amount.read(text) for text in ("tail", "", "12", "1.5", None, 5, True)] == [None] * 7


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
