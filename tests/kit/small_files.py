"""A full disk: no file can grow past a size."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """Let no file grow past *most* bytes. Python ignores the signal that comes with it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
