"""Claims: the statements of a study as data, checked on the outcomes that Engpass obtains.

A claims file selects checks from a fixed list (`engpass.claims.checks`) and gives them arguments; no code in
the file is executed.
"""

from engpass.claims.curves import Campaign
from engpass.claims.evaluate import Judged, counted, judge, summed, verdict
from engpass.claims.file import KINDS, MAIN, CampaignSpec, Claim, ClaimsError, ClaimsFile, Measure
from engpass.claims.reader import read

__all__ = [
    "KINDS",
    "MAIN",
    "Campaign",
    "CampaignSpec",
    "Claim",
    "ClaimsError",
    "ClaimsFile",
    "Judged",
    "Measure",
    "counted",
    "judge",
    "read",
    "summed",
    "verdict",
]
