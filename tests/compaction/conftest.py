"""Property tests run 100 examples here, 400 where CI=true is set, and 2,000 with HYPOTHESIS_PROFILE=thorough.

2,000 of every invariant take most of half an hour of CPU. In CI the examples are the same in every run, so that a
change is judged by what it changed; local and thorough runs look further each time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_OK = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

settings.register_profile("local", max_examples=100, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("ci", max_examples=400, deadline=None, derandomize=True, suppress_health_check=_SLOW_OK)
settings.register_profile("thorough", max_examples=2_000, deadline=None, suppress_health_check=_SLOW_OK)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "local"))
