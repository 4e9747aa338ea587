"""Colours, dashes and shapes.

One palette for the page (as CSS variables) and for the pictures (as literal colours).

Series differ in colour *and* shape, engines in dash, so no meaning rests on colour alone. Every colour has a
contrast of at least 3:1 to its background (WCAG 1.4.11), every text colour 4.5:1 (1.4.3); tests compute both.
"""

from collections.abc import Mapping, Sequence

from engpass.jsondata import Json
from engpass.results import ledger

LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "panel": "#f5f7f9",
    "ink": "#1a1f26",
    "muted": "#55606c",
    "line": "#d3d9e0",
    "accent": "#0a5aa8",
    "good": "#1a6e3c",
    "bad": "#b3261e",
    "mark": "#8a5a00",
    "s1": "#0067b1",
    "s2": "#c7490b",
    "s3": "#00805e",
    "s4": "#a6367f",
    "s5": "#7a6600",
    "s6": "#3d434a",
    "s7": "#008aa8",
    "s8": "#8a4b2a",
    "overhead1": "#0b3c6f",
    "overhead2": "#4a86bf",
    "overhead3": "#1f5f9e",
    "overhead4": "#6b93b8",
    "overhead5": "#0f6f8c",
    "overhead6": "#3b8fa6",
    "overhead7": "#27507a",
    "overhead8": "#4d7f9e",
    "delivered1": "#007a4d",
    "waste1": "#c62f26",
    "waste2": "#d9661c",
    "transit1": "#94780b",
    "other1": "#7a4fa3",
    "other2": "#9d6fc4",
    "other3": "#5f3a84",
    "idle1": "#8b949d",
    "idle2": "#646e78",
    "idle3": "#767061",
    "idle4": "#949078",
    "idle5": "#4f5a55",
    "idle6": "#85949a",
}
DARK: Mapping[str, str] = {
    "paper": "#11151a",
    "panel": "#1a2027",
    "ink": "#e6eaef",
    "muted": "#a3aeba",
    "line": "#35404b",
    "accent": "#7dbbff",
    "good": "#6fd096",
    "bad": "#ff8f86",
    "mark": "#f0b95a",
    "s1": "#5ab4f5",
    "s2": "#ff9057",
    "s3": "#35cba0",
    "s4": "#f08cc4",
    "s5": "#d9c84a",
    "s6": "#d5d9de",
    "s7": "#3fd0e0",
    "s8": "#d0a488",
    "overhead1": "#4f8fd0",
    "overhead2": "#9cc4ea",
    "overhead3": "#6fa9de",
    "overhead4": "#b9d3ea",
    "overhead5": "#57b5cf",
    "overhead6": "#8fd0e0",
    "overhead7": "#7f9fd0",
    "overhead8": "#a7c8dd",
    "delivered1": "#2fbf86",
    "waste1": "#ff6b5e",
    "waste2": "#ffa05c",
    "transit1": "#e0c34a",
    "other1": "#b78be0",
    "other2": "#d3b3f0",
    "other3": "#9a70c8",
    "idle1": "#66717c",
    "idle2": "#97a1ab",
    "idle3": "#857e6c",
    "idle4": "#b0a98d",
    "idle5": "#76837c",
    "idle6": "#a9b6bc",
}
CSS: Mapping[str, str] = {name: f"var(--{name})" for name in LIGHT}
"""The palette as CSS variables, so that drawings follow the light or dark colours of the page."""

_PAGE_COLOURS = {colour: CSS[name] for name, colour in LIGHT.items()}

SERIES = 8
"""Number of series colours."""

SHAPES = (
    "M0,-1A1,1,0,1,1,0,1A1,1,0,1,1,0,-1Z",
    "M-0.9,-0.9H0.9V0.9H-0.9Z",
    "M0,-1.15L1.1,0.85H-1.1Z",
    "M0,-1.3L1.1,0L0,1.3L-1.1,0Z",
    "M-0.4,-1.1H0.4V-0.4H1.1V0.4H0.4V1.1H-0.4V0.4H-1.1V-0.4H-0.4Z",
    "M0,1.15L1.1,-0.85H-1.1Z",
    "M-1.2,-0.5H1.2V0.5H-1.2Z",
)
"""Markers as SVG paths around the origin.

Seven shapes against eight colours: the first 56 series are all different.
"""

DASHES: Mapping[str, Sequence[int]] = {
    "simulate": (1, 0),
    "limit": (6, 4),
    "emulate": (2, 2),
    "measure": (10, 3, 2, 3),
}
"""One dash per engine; the closed form of `limit` is the dashed line."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', 'DejaVu Sans', sans-serif"
PICTURE_FONT = "Liberation Sans, DejaVu Sans, Arial, sans-serif"


def colour(index: int) -> str:
    """Name of the colour of the series at that position."""
    return f"s{index % SERIES + 1}"


def shape(index: int) -> str:
    """Marker of the series at that position."""
    return SHAPES[index % len(SHAPES)]


def dash(engine: str) -> Sequence[int]:
    """Dash of an engine; unknown engines get another dash."""
    return DASHES.get(engine, (4, 2, 1, 2))


def account_colours(accounts: Sequence[str]) -> list[str]:
    """Names of the colours of a ledger's accounts, in their order: one hue per family, shades in turn."""
    used: dict[str, int] = {}
    names = []
    for account in accounts:
        family = ledger.family(account).key
        shades = sum(name.rstrip("0123456789") == family for name in LIGHT)
        names.append(f"{family}{used.get(family, 0) % shades + 1}")
        used[family] = used.get(family, 0) + 1
    return names


def on_page(node: Json) -> Json:
    """Replace the colours of `LIGHT` in a specification by the CSS variables of the page."""
    if isinstance(node, Mapping):
        return {key: on_page(value) for key, value in node.items()}
    if isinstance(node, list):
        return [on_page(value) for value in node]
    return _PAGE_COLOURS.get(node, node) if isinstance(node, str) else node


def variables(palette: Mapping[str, str]) -> str:
    """The palette as CSS declarations."""
    return "".join(f"--{name}:{value};" for name, value in palette.items())


def config(palette: Mapping[str, str], font: str, legend: bool) -> dict[str, Json]:
    """Vega-Lite configuration in the colours of `palette`.

    `legend` is false for the page, which has its legends in HTML.
    """
    text: dict[str, Json] = {"labelFont": font, "titleFont": font, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": "transparent" if palette is CSS else palette["paper"],
        "font": font,
        "aria": False,  # the chart's box has a description, and the table of points has the numbers
        "view": {"stroke": None},
        "mark": {"color": palette["muted"]},
        "tick": {"color": palette["ink"], "opacity": 1},
        "range": {"category": [palette[colour(i)] for i in range(SERIES)]},
        "axis": {
            **text,
            "labelColor": palette["muted"],
            "titleColor": palette["ink"],
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "gridColor": palette["line"],
            "gridOpacity": 0.7,
            "domainColor": palette["muted"],
            "tickColor": palette["muted"],
            "labelOverlap": True,
            "labelLimit": 150,
        },
        "legend": {
            **text,
            "disable": not legend,
            "labelColor": palette["ink"],
            "titleColor": palette["muted"],
            "titleFontWeight": "normal",
            "orient": "bottom",
            "direction": "horizontal",
            "columns": 4,
            "labelLimit": 260,
            "symbolStrokeWidth": 2,
            "symbolSize": 90,
        },
        "header": {
            **text,
            "labelColor": palette["ink"],
            "titleColor": palette["muted"],
            "titleFontWeight": "normal",
            "labelFontWeight": "bold",
        },
        "title": {
            "font": font,
            "subtitleFont": font,
            "color": palette["ink"],
            "subtitleColor": palette["muted"],
            "anchor": "start",
            "limit": 640,
            "fontSize": 15,
            "subtitleFontSize": 12,
            "subtitlePadding": 6,
            "offset": 14,
        },
        "style": {
            "reference": {"stroke": palette["muted"], "strokeDash": [3, 3], "strokeWidth": 1},
            "note": {"fill": palette["muted"], "font": font, "fontSize": 11},
        },
    }
