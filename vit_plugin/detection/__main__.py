"""``python -m vit_plugin.detection SCRIPT ARGUMENTS`` runs a script that needs the ops.

Python imports the package before this module, and that import provides the ops.
"""

import runpy
import sys
from pathlib import Path

if len(sys.argv) < 2:
    sys.exit('python -m vit_plugin.detection SCRIPT ARGUMENTS: there is no script.')
if not Path(sys.argv[1]).exists():
    sys.exit(
        f'python -m vit_plugin.detection: there is no script {sys.argv[1]!r}; correct its path.'
    )
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name='__main__')
