"""``vit-plugin convert`` as a script, for the habits of OpenMMLab."""

import sys

from vit_plugin.__main__ import main

if __name__ == '__main__':
    sys.exit(main(['convert', *sys.argv[1:]]))
