"""Apply the `breaks` of every claim of the gallery: `python tools/prove_breaks.py [STUDY [CLAIM ...]]`.

Exit code 1 if a claim holds in spite of its change, if a change breaks more than half of the other claims, or
if a known difference holds.
"""

from __future__ import annotations

import sys
import time

from breaking import Attempt, break_claims

from engpass import gallery
from engpass.error import EngpassError


def main() -> int:
    """Prove one study, or all of the gallery."""
    name, wanted = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else (None, [])
    problems: list[tuple[str, Attempt]] = []
    try:
        for study in gallery.studies() if name is None else [gallery.study(name)]:
            print(f"{study.name}:", flush=True)
            begin = time.monotonic()
            attempts = break_claims(study, tell, wanted=wanted)
            problems += [(study.name, attempt) for attempt in attempts if attempt.problem]
            print(f"{study.name}: {len(attempts)} claims, {time.monotonic() - begin:.0f} s\n", flush=True)
    except EngpassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for study_name, attempt in problems:
        print(f"error: {study_name}: claim `{attempt.claim.id}`: {attempt.problem}", file=sys.stderr)
    return int(bool(problems))


def tell(attempt: Attempt) -> None:
    """Print one claim, its change and the value obtained with it."""
    change = " = ".join(attempt.claim.breaks or ())
    if attempt.problem:
        print(f"  WRONG {attempt.claim.id}: {attempt.problem} ({change}; {attempt.obtained})", flush=True)
    else:
        held = f"{attempt.held} of {attempt.others} others hold"
        print(f"  fails {attempt.claim.id}: {attempt.obtained} ({change}); {held}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
