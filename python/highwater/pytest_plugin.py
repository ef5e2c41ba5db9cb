"""The fixture ``assert_fits`` for pytest; loaded by pytest itself once the package is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ._compile import assert_fits as _assert_fits
from ._report import Report


@pytest.fixture
def assert_fits(record_property: Callable[[str, object], None]) -> Callable[..., Report]:
    """:func:`highwater.assert_fits`, which also writes what it measured into the test report."""

    def check(step: Any, *args: Any, **options: Any) -> Report:
        __tracebackhide__ = True
        report = _assert_fits(step, *args, **options)
        record_property("highwater_allocated_bytes", report.allocated_bytes)
        record_property("highwater_capacity_bytes", report.capacity_bytes)
        return report

    return check
