"""Where the processes that tests start keep what Assay remembers: never in the home of the user."""

import sys


def state_variables(directory: str, platform: str = sys.platform) -> dict[str, str]:
    """Return the variables that put the state directory below *directory* on *platform*."""
    if platform == "darwin":
        # There is no variable for the state directory alone.
        return {"XDG_STATE_HOME": directory, "HOME": directory}
    return {"LOCALAPPDATA" if platform == "win32" else "XDG_STATE_HOME": directory}
