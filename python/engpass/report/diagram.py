"""The diagram of a testbed as one SVG: nodes, links with medium and rate, and the paths of the traffic.

There are two layouts, along the page and down the page; the page shows the one that fits its width.
"""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from engpass.report import theme
from engpass.report.layout import MOST_FLOWS, Graph, Link, layers, read
from engpass.show.markup import esc
from engpass.types.plan import Drawing
from engpass.units import unit_for

_BOX_WIDTH = 118.0
_BOX_HEIGHT = 46.0
_MARGIN = 12.0
_LANE = 7.0
_LABEL = 50.0
"""Space for a label above its link: a name, up to two more lines, and room for a sloping link."""

Place = tuple[float, float]


class _Sheet(msgspec.Struct, frozen=True, dict=True):
    """The positions of a drawing: the centre of each node's box, and its size without the legend."""

    graph: Graph
    places: Mapping[int, Place]
    width: float
    height: float
    narrow: bool

    def ways(self) -> list[tuple[int, int, int, Link]]:
        """The hops of the drawn flows: index of the flow, node from, node to, link."""
        return [
            (number, a, b, self._link(a, b, name))
            for number, route in enumerate(self.graph.flows[:MOST_FLOWS])
            for a, b, name in route.hops
        ]

    def _link(self, a: int, b: int, name: str) -> Link:
        """The link between two nodes that has this name, or the first one."""
        links = [link for link in self.graph.links if {a, b} == set(link.ends)]
        return next((link for link in links if link.name == name), links[0])

    @cached_property
    def lanes(self) -> dict[str, int]:
        """Number of lanes beside each link that has lanes, by the name of the link."""
        count: dict[str, int] = {}
        for *_, link in self.ways():
            count[link.name] = count.get(link.name, 0) + 1
        return count


def diagram(
    topology: Drawing,
    *,
    narrow: bool = False,
    palette: Mapping[str, str] = theme.CSS,
    font: str = "",
) -> str:
    """The drawing as an `svg` element.

    If `palette` is not the page's, the colours are literal and the drawing has a background.
    """
    graph = read(topology)
    sheet = _sheet(graph, narrow)
    body = [_link(sheet, link, palette) for link in graph.links]
    body.append(_flows(sheet, palette))
    labels = [_label(sheet, link, palette) for link in graph.links]
    body += [text for text, _ in labels]
    body += [_node(sheet, node, palette) for node in range(len(graph.nodes))]
    legend, legend_height, legend_width = _legend(sheet, palette)
    width = max(sheet.width, legend_width, *(reach + _MARGIN for _, reach in labels))
    height = sheet.height + legend_height
    paper = (
        ""
        if palette is theme.CSS
        else f'<rect width="{width:.0f}" height="{height:.0f}" fill="{palette["paper"]}"/>'
    )
    family = esc(font or "inherit")
    key = "narrow" if narrow else "wide"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram {key}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{esc(describe(topology))}" '
        f'font-family="{family}" font-size="13">{paper}{"".join(body)}{legend}</svg>'
    )


def describe(topology: Drawing) -> str:
    """A description of the drawing, for screen readers."""
    graph = read(topology)
    nodes = "; ".join(f"{name} ({kind})" for name, kind in graph.nodes)
    links = "; ".join(
        f"{graph.nodes[link.ends[0]][0]} to {graph.nodes[link.ends[1]][0]}, "
        f"{', '.join(filter(None, [link.medium, *_rates(graph, link)]))}"
        for link in graph.links
    )
    flows = "; ".join(
        f"{flow.name} ({flow.kind}) from {flow.ends[0]} to {flow.ends[1]}" for flow in graph.flows
    )
    said = f"Diagram of the testbed. Nodes: {nodes}. Links: {links}. Traffic: {flows}."
    return f"{said} {graph.hidden}." if graph.hidden else said


def _sheet(graph: Graph, narrow: bool) -> _Sheet:
    rows = layers(graph)
    widest = max((len(row) for row in rows), default=1)
    places: dict[int, Place] = {}
    if narrow:
        step, pitch = 126.0, _BOX_WIDTH + 14
        width = max(330.0, widest * pitch + 2 * _MARGIN - 14)
        for level, row in enumerate(rows):
            for i, node in enumerate(row):
                places[node] = (width * (i + 0.5) / len(row), _MARGIN + _BOX_HEIGHT / 2 + level * step)
        height = 2 * _MARGIN + _BOX_HEIGHT + step * max(0, len(rows) - 1)
        return _roomy(_Sheet(graph, places, width, height, True))
    step, pitch = 300.0, 126.0
    height = max((widest - 1) * pitch + _BOX_HEIGHT + 2 * _MARGIN, 140)
    for level, row in enumerate(rows):
        for i, node in enumerate(row):
            places[node] = (
                _MARGIN + _BOX_WIDTH / 2 + level * step,
                height / 2 + (i - (len(row) - 1) / 2) * pitch,
            )
    width = 2 * _MARGIN + _BOX_WIDTH + step * max(0, len(rows) - 1)
    return _roomy(_Sheet(graph, places, width, height, False))


def _roomy(sheet: _Sheet) -> _Sheet:
    """Enlarge the sheet to hold links that fan out beyond the nodes, and their labels."""
    middles = [_path(sheet, link)[1] for link in sheet.graph.links]
    lanes = _LANE * max(sheet.lanes.values(), default=0)
    # A label stands above a link that goes along the page, and right of one that goes down it.
    left = max((_MARGIN + lanes - x for x, _ in middles), default=0.0) if sheet.narrow else 0.0
    top = 0.0 if sheet.narrow else max((_MARGIN + _LABEL - y for _, y in middles), default=0.0)
    right = max((x + lanes + _MARGIN for x, _ in middles), default=0.0)
    bottom = max((y + lanes + _MARGIN for _, y in middles), default=0.0)
    left, top = max(0.0, left), max(0.0, top)
    places = {node: (x + left, y + top) for node, (x, y) in sheet.places.items()}
    width, height = max(sheet.width, right) + left, max(sheet.height, bottom) + top
    return _Sheet(sheet.graph, places, width, height, sheet.narrow)


def _rates(graph: Graph, link: Link) -> list[str]:
    """The line rate of a link, or if they differ, the rate of each direction with its sender."""
    if len(set(link.rates)) < 2:
        return [unit_for("bit/s", [rate]).say(rate, 6) for rate in link.rates[:1]]
    senders = (graph.nodes[end][0] for end in link.ends)
    return [
        f"{unit_for('bit/s', [rate]).say(rate, 6)} from {node}"
        for rate, node in zip(link.rates, senders, strict=True)
    ]


def _along(sheet: _Sheet, a: int, b: int) -> tuple[float, float, float]:
    """Unit vector and distance between two nodes, always in reading direction.

    The right-hand side of the vector is therefore below the line, or left of it in the narrow layout.
    """
    first, second = sheet.places[a], sheet.places[b]
    if (first[::-1] if sheet.narrow else first) > (second[::-1] if sheet.narrow else second):
        first, second = second, first
    dx, dy = second[0] - first[0], second[1] - first[1]
    length = max(1.0, (dx * dx + dy * dy) ** 0.5)
    return dx / length, dy / length, length


def _bend(sheet: _Sheet, link: Link) -> float:
    """The sideways deflection of a line: parallel links fan out, and a link avoids nodes between its ends."""
    pitch = 116.0 if sheet.narrow else 50.0 + _LANE * max(sheet.lanes.values(), default=0)
    swerve = (link.parallel - (link.of - 1) / 2) * pitch
    (ax, ay), (bx, by) = (sheet.places[end] for end in link.ends)
    for node, (x, y) in sheet.places.items():
        if node in link.ends:
            continue
        part = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / max(1.0, (bx - ax) ** 2 + (by - ay) ** 2)
        if 0.05 < part < 0.95:
            dx, dy = x - (ax + part * (bx - ax)), y - (ay + part * (by - ay))
            if abs(dx) < _BOX_WIDTH / 2 + 8 and abs(dy) < _BOX_HEIGHT / 2 + 8:
                return swerve + (170.0 if sheet.narrow else 120.0)
    return swerve


def _path(sheet: _Sheet, link: Link, lane: int = 0) -> tuple[str, Place]:
    """SVG path data of a link, or of a lane beside it, and the middle of the path.

    The bundle of a link and its lanes is centred on the nodes.
    """
    ux, uy, _ = _along(sheet, *link.ends)
    lanes = sheet.lanes.get(link.name, 0)
    side, swerve = (lane - lanes / 2) * min(_LANE, 40 / max(1, lanes)), _bend(sheet, link)
    (ax, ay), (bx, by) = (sheet.places[end] for end in link.ends)
    p, q = (ax - uy * side, ay + ux * side), (bx - uy * side, by + ux * side)
    mx, my = (p[0] + q[0]) / 2, (p[1] + q[1]) / 2
    control = (mx - uy * 2 * swerve, my + ux * 2 * swerve)
    data = f"M{p[0]:.1f},{p[1]:.1f}Q{control[0]:.1f},{control[1]:.1f} {q[0]:.1f},{q[1]:.1f}"
    return data, (mx - uy * swerve, my + ux * swerve)


def _link(sheet: _Sheet, link: Link, palette: Mapping[str, str]) -> str:
    data, _ = _path(sheet, link)
    return f'<path d="{data}" fill="none" stroke="{palette["muted"]}" stroke-width="2"/>'


def _label(sheet: _Sheet, link: Link, palette: Mapping[str, str]) -> tuple[str, float]:
    """The label of a link (name, medium, rate) on its side without lanes, and the label's right edge.

    A corner of the text touches a steep line, so that the line does not cross it. A halo in the colour of the
    paper keeps the text readable where other lines cross it.
    """
    ux, uy, length = _along(sheet, *link.ends)
    _, (x, y) = _path(sheet, link)
    rates = _rates(sheet.graph, link)
    steep = abs(uy) > (0.2 if sheet.narrow else abs(ux))
    # A slope leaves little room before the next node.
    stacked = steep or abs(uy) > 0.3
    stacked = stacked or len(rates) > 1
    second = [link.medium, *rates] if stacked else [" · ".join(filter(None, [link.medium, *rates]))]
    lines = [_short(text, 26) for text in (link.name, *second) if text]
    width, height = max((len(line) for line in lines), default=0) * 6.4, 15.0 * len(lines)
    anchor = "start" if steep else "middle"
    if not steep:
        if abs(uy) > 0.3:
            anchor = "start" if uy > 0 else "end"
            top = y - height - 6
        else:
            top = y - height - 5 - abs(uy / ux) * width / 2
    elif abs(ux) < 0.1:
        x, top = x + 9, y - height / 2
    else:  # on the outer side of the fan that links make where they meet
        x, top = x - ux * length * 0.12 + 9, y - uy * length * 0.12
        if ux > 0:
            anchor = "end"
            x = max(width + 4, x - 20 - min(40.0, _LANE * sheet.lanes.get(link.name, 0)))
    halo = f'stroke="{palette["paper"]}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
    text = "".join(
        f'<text x="{x:.1f}" y="{top + 12 + 15 * i:.1f}" text-anchor="{anchor}" font-size="12" '
        f'fill="{palette["muted" if i else "ink"]}" {halo}>{esc(line)}</text>'
        for i, line in enumerate(lines)
    )
    return text, x + width * {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor]


def _flows(sheet: _Sheet, palette: Mapping[str, str]) -> str:
    """The paths of the flows: coloured lanes beside the links, with an arrow head on every link."""
    used: dict[str, int] = {}
    parts = []
    for number, a, b, link in sheet.ways():
        colour = palette[theme.colour(number)]
        lane = used[link.name] = used.get(link.name, 0) + 1
        data, middle = _path(sheet, link, lane)
        parts.append(f'<path d="{data}" fill="none" stroke="{colour}" stroke-width="3"/>')
        parts.append(_arrow(sheet.places[a], sheet.places[b], middle, lane, colour))
    return "".join(parts)


def _arrow(start: Place, end: Place, at: Place, lane: int, colour: str) -> str:
    """An arrow head near the middle of a lane, offset so that those of neighbouring lanes do not overlap."""
    length = max(1.0, ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5)
    ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    ahead = 16 - 11 * (lane % 3)
    x, y = at[0] + ux * ahead, at[1] + uy * ahead
    corners = [
        (x + ux * 8, y + uy * 8),
        (x - uy * 5.5 - ux * 4, y + ux * 5.5 - uy * 4),
        (x + uy * 5.5 - ux * 4, y - ux * 5.5 - uy * 4),
    ]
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def _node(sheet: _Sheet, node: int, palette: Mapping[str, str]) -> str:
    name, kind = sheet.graph.nodes[node]
    x, y = sheet.places[node]
    host = kind == "host"
    corner = {"host": 8.0, "router": _BOX_HEIGHT / 2}.get(kind, 0.0)
    frame = palette["muted"] if host else palette["ink"]
    box = (
        f'<rect x="{x - _BOX_WIDTH / 2:.1f}" y="{y - _BOX_HEIGHT / 2:.1f}" width="{_BOX_WIDTH:.0f}" '
        f'height="{_BOX_HEIGHT:.0f}" rx="{corner:g}" fill="{palette["panel"]}" stroke="{frame}" '
        f'stroke-width="{1.5 if host else 2.5}"/>'
    )
    return (
        f"<g><title>{esc(name)}, {esc(kind)}</title>{box}"
        f'<text x="{x:.1f}" y="{y - 2:.1f}" text-anchor="middle" font-weight="bold" fill="{palette["ink"]}">'
        f"{esc(_short(name, 15))}</text>"
        f'<text x="{x:.1f}" y="{y + 14:.1f}" text-anchor="middle" font-size="12" fill="{palette["muted"]}">'
        f"{esc(_short(kind, 18))}</text></g>"
    )


def _legend(sheet: _Sheet, palette: Mapping[str, str]) -> tuple[str, float, float]:
    """The flows by colour, circuits, tunnels and bonds by name, under the drawing; with height and width."""
    graph = sheet.graph
    entries: list[tuple[str | None, str]] = [
        (palette[theme.colour(i)], f"{flow.name}: {flow.kind}, {flow.ends[0]} → {flow.ends[1]}")
        for i, flow in enumerate(graph.flows[:MOST_FLOWS])
    ]
    if len(graph.flows) > MOST_FLOWS:
        entries.append((None, f"and {len(graph.flows) - MOST_FLOWS} more flows"))
    entries += [
        (None, f"circuit {circuit.name}: {circuit.ends[0]} → {circuit.ends[1]}")
        for circuit in graph.circuits[:MOST_FLOWS]
    ]
    if len(graph.circuits) > MOST_FLOWS:
        entries.append((None, f"and {len(graph.circuits) - MOST_FLOWS} more circuits"))
    entries += [
        (None, f"tunnel {tunnel.name}: {tunnel.kind}, {tunnel.ends[0]} ↔ {tunnel.ends[1]}")
        for tunnel in graph.tunnels[:MOST_FLOWS]
    ]
    if len(graph.tunnels) > MOST_FLOWS:
        entries.append((None, f"and {len(graph.tunnels) - MOST_FLOWS} more tunnels"))
    entries += [(None, bond) for bond in graph.bonds[:MOST_FLOWS]]
    if len(graph.bonds) > MOST_FLOWS:
        entries.append((None, f"and {len(graph.bonds) - MOST_FLOWS} more bonds"))
    if graph.hidden:
        entries.append((None, graph.hidden))
    room = 44 if sheet.narrow else 90
    out, y = [], sheet.height + 14
    shown = [(colour, _short(text, room)) for colour, text in entries]
    for colour, text in shown:
        if colour:
            head = f"{_MARGIN + 26},{y - 4:.1f} {_MARGIN + 17},{y - 9:.1f} {_MARGIN + 17},{y + 1:.1f}"
            out.append(f'<path d="M{_MARGIN},{y - 4:.1f}h20" stroke="{colour}" stroke-width="3"/>')
            out.append(f'<polygon points="{head}" fill="{colour}"/>')
        tone = palette["ink"] if colour else palette["muted"]
        out.append(f'<text x="{_MARGIN + 34}" y="{y:.1f}" font-size="12" fill="{tone}">{esc(text)}</text>')
        y += 19
    width = max((len(text) for _, text in shown), default=0) * 6.6 + _MARGIN + 44
    return "".join(out), 19.0 * len(shown) + 10, width


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
