"""The first import of the frameworks. What is missing there ends a command in one sentence."""

import sys
from pathlib import Path

from vit_plugin.errors import MissingExtraError, needed_by
from vit_plugin.files.shipped import shipped

try:
    # First, since it says what to install where MMEngine is missing.
    from vit_plugin import registry  # noqa: F401

    with needed_by('The command'):
        import mmengine.runner  # noqa: F401  which imports OpenCV
except MissingExtraError as error:
    program = getattr(sys.modules['__main__'], '__file__', None)
    if program and Path(program).resolve().parent == shipped('tools').resolve():
        # A tool that is started as a script has no caller to say so.
        raise SystemExit(f'Error: {error}') from None
    raise
