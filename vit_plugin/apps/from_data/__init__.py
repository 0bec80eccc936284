"""A config for a folder of data, in place of one written by hand: ``vit-plugin train --data FOLDER``."""
