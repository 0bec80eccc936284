"""How a try to download ends that brings no file."""


class RefusedError(Exception):
    """The file cannot be had from there. Another try is of no use."""


class FailedError(Exception):
    """The try failed, and another may not. ``wait``: the seconds that the server asks for."""

    def __init__(self, reason: str, wait: float = 0) -> None:
        super().__init__(reason)
        self.wait = wait
