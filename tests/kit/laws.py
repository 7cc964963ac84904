"""How laws are tested: which examples, how many, and for how long."""

import os
from contextlib import suppress

from hypothesis import HealthCheck, settings

PROFILE = "suite"

# Hypothesis also draws from the constants of our modules that are loaded by then, so examples would depend on the tests
# before. There is no setting for that; a version that has no such function may do without.
with suppress(ImportError):
    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.constants_ast import Constants

    providers._get_local_constants = Constants

settings.register_profile(
    PROFILE,
    # The same examples on every run and every machine, and never by the clock: a machine under load is slow.
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def law(examples: int) -> settings:
    """
    Return the settings of a law with so many examples, twenty times as many with `LAWS=20`.

    Without it half of them are taken. The first examples are the small ones, and find nearly all that the others do.
    """
    times = os.environ.get("LAWS")
    return settings(max_examples=examples // 2 if times is None else examples * int(times))
