"""The error of a claim whose data are missing."""


class NoDataError(Exception):
    """A claim needs data that its campaign does not have, so that the claim does not hold."""
