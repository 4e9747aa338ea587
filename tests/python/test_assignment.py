"""`PATH=VALUE`, where parts of the path may be quoted."""

from __future__ import annotations

import pytest

from engpass import assignment


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("link.wire=a.pcapng", ("link.wire", "a.pcapng")),
        ("link.wire=a=b.pcapng", ("link.wire", "a=b.pcapng")),
        ('link."a=b"=c=d', ('link."a=b"', "c=d")),
        ("link . 'a=b' .node= c", ("link . 'a=b' .node", " c")),
        (r'link."a\"=b".x=y', (r'link."a\"=b".x', "y")),
        ('traffic.x.y="a=b"', ("traffic.x.y", '"a=b"')),
        ("link.to the lab=f", ("link.to the lab", "f")),
        ('link.5" disk=f', ('link.5" disk', "f")),
        ("=f", ("", "f")),
        ("link.wire", None),
        ('link."a=b', ('link."a', "b")),
        ("", None),
    ],
)
def test_the_first_equals_sign_outside_quotes_ends_the_path(text: str, parts: tuple[str, str] | None) -> None:
    assert assignment.split(text) == parts
