"""Puts the repository and the helpers of `tests/` on the path; needs no torch."""

import tools  # noqa: F401
