"""What a jitted function needs of the device's memory, before it runs: compiled, measured, explained.

>>> import highwater
>>> report = highwater.profile(train_step, params, batch)
>>> report.fits, report.peak_bytes, report.capacity_bytes
>>> report.open()

Nothing but the standard library is needed; jax only for what compiles.
"""

from ._compile import assert_fits, fits_on, profile
from ._program import ProgramNotFound, program
from ._report import Finding, Plan, Report, read

__all__ = [
    "Finding",
    "Plan",
    "ProgramNotFound",
    "Report",
    "assert_fits",
    "fits_on",
    "profile",
    "program",
    "read",
]
