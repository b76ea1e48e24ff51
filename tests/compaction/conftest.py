"""Property tests run 100 examples here, 2,000 where CI=true is set, and 10,000 with HYPOTHESIS_PROFILE=thorough.

In CI the examples are the same in every run, so that a change is judged by what it changed; local and thorough runs
look further each time. Nothing is kept of earlier runs there: a database would make two runs differ."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_OK = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
"""An example is a whole conversation, played through several compactions: slow by nature."""

settings.register_profile("local", max_examples=100, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile(
    "ci", max_examples=2_000, deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW_OK
)
settings.register_profile("thorough", max_examples=10_000, deadline=None, suppress_health_check=_SLOW_OK)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "local"))
