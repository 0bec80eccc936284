"""``vit-plugin doctor`` as a script, for the habits of OpenMMLab."""

from vit_plugin.__main__ import script

if __name__ == '__main__':
    script('doctor')
