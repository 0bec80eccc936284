"""``python -m vit_plugin.detection SCRIPT ARGUMENTS``: the script, with the ops there from its first line on.

By now the package itself has been imported, and that is what puts the ops there.
"""

import runpy
import sys
from pathlib import Path

if len(sys.argv) < 2:
    sys.exit('python -m vit_plugin.detection SCRIPT ARGUMENTS: there is no script.')
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name='__main__')
