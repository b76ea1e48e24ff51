"""Property tests run 100 examples here, 2,000 where CI=true is set.

100 examples of every invariant take about 45 s of CPU, 2,000 a quarter of an hour, which two cores share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_OK = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

settings.register_profile("local", max_examples=100, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("ci", max_examples=2_000, deadline=None, suppress_health_check=_SLOW_OK)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "local"))
