"""`engpass gallery`: lists the studies that come with Engpass."""

from __future__ import annotations

from engpass.cli import console, options


def command(as_json: options.Json = False) -> None:
    """List the studies: title, number of claims, and directory of each."""
    from engpass import gallery

    found = [(study, study.claims()) for study in gallery.studies()]
    if as_json:
        for study, claims in found:
            console.line(
                {
                    "study": study.name,
                    "title": claims.title,
                    "reference": claims.reference,
                    "claims": len(claims.claims),
                    "directory": str(study.directory),
                }
            )
        return
    width = max((len(study.name) for study, _ in found), default=0)
    for study, claims in found:
        console.out(f"{study.name:{width}}  {claims.title}, {len(claims.claims)} claims")
        console.out(f"{'':{width}}  {study.directory}")
    console.tell("`engpass reproduce STUDY` runs a study and checks its claims; its README.md describes it")
