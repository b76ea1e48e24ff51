"""Property tests run 100 examples here, and more where HYPOTHESIS_PROFILE=thorough is set."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_OK = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

settings.register_profile("local", max_examples=100, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("thorough", max_examples=1_000, deadline=None, suppress_health_check=_SLOW_OK)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))
