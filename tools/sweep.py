"""``python benchmarks sweep``, formerly ``vit-plugin sweep``, as a script in ``tools/``."""

from vit_plugin.__main__ import script

if __name__ == '__main__':
    script('sweep')
