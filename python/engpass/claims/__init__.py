"""Claims: what a study states, as data, checked on what Engpass obtains.

A claims file names checks of a small vocabulary (`engpass.claims.checks`) and gives them arguments; nothing
in it is executed.
"""

from engpass.claims.curves import Campaign
from engpass.claims.file import MAIN, CampaignSpec, Claim, ClaimsError, ClaimsFile, read
from engpass.claims.judge import Judged, judge

__all__ = [
    "MAIN",
    "Campaign",
    "CampaignSpec",
    "Claim",
    "ClaimsError",
    "ClaimsFile",
    "Judged",
    "judge",
    "read",
]
