"""Accounts of ledgers: generated from `crates/engpass-ledger` by `make gen`."""

FAMILIES: list[tuple[str, str, str, list[str]]] = [
    (
        "overhead",
        "framing and headers",
        "",
        [
            "physical framing",
            "cell headers",
            "frame headers",
            "padding",
            "AAL5 trailers",
            "encapsulation",
            "IP headers",
            "tunnel headers",
            "transport headers",
        ],
    ),
    (
        "delivered",
        "delivered",
        "",
        [
            "delivered",
        ],
    ),
    (
        "waste",
        "wasted",
        "",
        [
            "duplicate",
            "lost datagrams",
        ],
    ),
    (
        "transit",
        "in flight at the end",
        "",
        [
            "in flight",
        ],
    ),
    (
        "other",
        "other traffic",
        "generator: ",
        [
            "ACK and control",
            "undeclared traffic",
        ],
    ),
    (
        "idle",
        "idle",
        "idle: ",
        [
            "idle: real host",
            "idle: application",
            "idle: CPU",
            "idle: NIC buffer",
            "idle: send buffer",
            "idle: receive window",
            "idle: congestion window",
            "idle: retransmission timer",
            "idle: Nagle",
            "idle: silly window avoidance",
            "idle: handshake",
            "idle: pacing",
            "idle: shaper",
            "idle: upstream",
            "idle: other way",
            "idle: line down",
            "idle: no sender",
            "idle: unknown",
        ],
    ),
]
"""Families of accounts in the order of display: key, title, prefix of further accounts, accounts."""
