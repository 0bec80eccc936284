"""``vit-plugin benchmark`` as a script, for the habits of OpenMMLab."""

import sys

from vit_plugin.__main__ import main

if __name__ == '__main__':
    sys.exit(main(['benchmark', *sys.argv[1:]]))
