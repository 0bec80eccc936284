"""Python's collector of cycles, which slows down what makes many objects and drops few."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Search for no cycles meanwhile: a third of the time of reading 200,000 images."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
