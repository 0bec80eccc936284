"""``vit-plugin convert`` as a script, as in OpenMMLab's repositories."""

from vit_plugin.__main__ import script

if __name__ == '__main__':
    script('convert')
