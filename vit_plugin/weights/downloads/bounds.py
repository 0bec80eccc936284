"""What a download may take of time and of the disk."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vit_plugin.errors import ConfigError

GIB = 1 << 30


@dataclass(frozen=True)
class Bounds:
    """What a download may take.

    Attributes:
        header: seconds until the answer's header is there, with the name's lookup and redirects.
        silence: seconds in which at least ``slowest * silence`` bytes of the body must come.
        slowest: bytes per second.
        size: bytes of a file. A file whose size is not known before may also fill half of the free space at most.
        tries: tries in a row that bring less than ``gain`` new bytes each.
        gain: bytes.
        pause: seconds before the second try; twice as many before each further one.
        longest_wait: seconds that a server may ask for before the next try.
    """
    header: float = 30
    silence: float = 30
    slowest: float = 1024
    size: int = 20 * GIB
    tries: int = 4
    gain: int = 1 << 20
    pause: float = 1
    longest_wait: float = 60

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> 'Bounds':
        """The bounds with ``VIT_PLUGIN_DOWNLOAD_SECONDS`` and ``VIT_PLUGIN_DOWNLOAD_GIB`` where they are set.

        Raises:
            ConfigError: if one of them is not a number above 0.
        """
        changed: dict[str, Any] = {}
        for name, fields, unit in (('SECONDS', ('header', 'silence'), 1), ('GIB', ('size', ), GIB)):
            text = environment.get(f'VIT_PLUGIN_DOWNLOAD_{name}')
            if text is None:
                continue
            if not re.fullmatch(r'\d{1,9}(\.\d{1,9})?', text) or not float(text):
                raise ConfigError(f'The environment variable VIT_PLUGIN_DOWNLOAD_{name}={text!r} must be a number '
                                  'above 0; correct it, or take it out.')
            changed |= dict.fromkeys(fields, float(text) * unit)
        return cls(**changed)

    @property
    def still(self) -> float:
        """Seconds after which a process that downloads and shows no sign of it is taken to be stopped."""
        return self.tries * (self.header + self.silence + self.longest_wait) + self.pause * 2**self.tries
