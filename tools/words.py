"""Fail when a retired identifier or a phrase that readers stumble over comes back.

Identifiers count in code, comments and pages; phrases in comments, docstrings and pages.
docs/glossary.md has the terms.
"""

import re
import subprocess
import sys
from pathlib import Path

# A private word of earlier code: the name that took its place.
RETIRED = {
    "Adapting": "AdaptiveShaper",
    "BookSeen": "LineUsageStats",
    "LaneInputs": "DirectionInputs",
    "Lottery": "LinkImpairments",
    "Outsiders": "InjectedSenders",
    "Overtaken": "PeriodicPriority",
    "PduAtHost": "PduDueAtHost",
    "PduAtRouter": "PduDueAtRouter",
    "Plainly": "FastPath",
    "SentOff": "TransmitRing",
    "WaySeen": "PathInfo",
    "act_plainly": "send_and_write",
    "add_rarely": "add_cold",
    "all_go_on": "receive_or_forward_copies",
    "ask_way": "choose_path",
    "book_later": "enable_deferral",
    "book_pieces": "post_pieces",
    "books_of": "usage_indices_of",
    "carry_on": "advance_downstream",
    "control_lanes": "count_control_directions",
    "cuts_full": "sends_only_full",
    "emit_and_stir": "emit_and_note_activity",
    "ends_frame": "ends_pdu",
    "find_told": "enable_lookahead_to_ports",
    "forget_doubts": "rule_out_undo",
    "frame_lands": "on_frame_arrival",
    "go_on_with": "run_send_loop",
    "goes_at_once": "try_enter_nic_directly",
    "grow_anew": "reset_growth",
    "hand_on_low": "emit_low",
    "heads_outside": "injected_heads",
    "keep_no_books": "disable_ledger",
    "land_oddly": "pop_arrival_slow_path",
    "left_nic": "nic_departures",
    "lives_long_enough": "check_ttl",
    "lose_frame": "lose_pdu",
    "lose_oddly": "drop_packet_slow_path",
    "lose_packet": "drop_packet",
    "may_overlook": "can_skip_admission",
    "next_beat": "next_tick",
    "only_if_everywhere": "only_if_at_every_point",
    "only_the_timer_goes_on": "awaits_timeout",
    "open_books": "begin_measurement",
    "outer_packets_live": "check_outer_ttl",
    "plain_route": "fast_path_route",
    "see_to_wake": "schedule_wake",
    "send_odd": "send_slow_path",
    "settle_alike": "try_extend_run",
    "share_simply": "apportion_two_states",
    "sweep_and_tell": "sweep_and_report",
    "take_at_hand": "drain_nic_queue",
    "take_plainly": "receive_fast_path",
    "tell_bond": "update_bond_policies",
    "tell_cells": "emit_exact_trains",
    "tell_host": "enable_lookahead_to_host",
    "tells_port": "delivers_ahead",
    "user_left_oddly": "attribute_slow_path",
    "wait_of": "sender_state_of",
    "waits_at": "set_state_at",
    "was_down": "assign_to_line_down",
    "writer_stirs": "note_writer_activity",
}

# Turns of phrase that have a plain form: name the thing, and use the field's verb.
PHRASES = (
    "as many as come",
    "at hand",
    "comes in between",
    "gone on",
    "in the midst of",
    "is told",
    "are told",
    "it is theirs",
    "oddly",
    "plainly",
    "put in from outside",
    "so many",
    "somebody",
    "the like of",
    "what becomes of",
    "whoever",
    "who has something",
    "is no text",
)

TEXT = {
    ".rs": re.compile(r"//[^\n]*"),
    ".py": re.compile(r'(?:#[^\n]*)|"""(?:.*?)"""', re.DOTALL),
    ".md": re.compile(r"(?s)```.*?```|[^`\n]+"),
}
# A changelog tells of old names; snapshots and generated pages repeat other texts.
APART = (
    "CHANGELOG.md",
    "tools/words.py",
    "tests/python/test_words.py",
    "tests/python/snapshots/",
    "benches/RESULTS.md",
    "docs/reference.md",
)


def found_in(name: str, text: str) -> list[str]:
    """Retired words in a file, each with its line and its cure."""
    words = re.compile(r"\b(?:" + "|".join(RETIRED) + r")\b")
    phrases = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b", re.IGNORECASE)
    found = [(m.start(), f"`{m[0]}` is now `{RETIRED[m[0]]}`") for m in words.finditer(text)]
    for part in TEXT[Path(name).suffix].finditer(text):
        # Blocks of a page are commands and outputs.
        if not part[0].startswith("```"):
            found += [
                (part.start() + m.start(), f"say `{m[0]}` in other words") for m in phrases.finditer(part[0])
            ]
    return [f"{name}:{text.count(chr(10), 0, at) + 1}: {cure}" for at, cure in sorted(found)]


def main() -> int:
    """Print what was found; 1 if there is anything."""
    listing = ["git", "ls-files", "*.rs", "*.py", "*.md"]
    names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    found = [
        line
        for name in names
        if not name.startswith(APART) and Path(name).exists()
        for line in found_in(name, Path(name).read_text())
    ]
    print("\n".join(found) or "no retired words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
