"""Generate a config for a folder of data: ``vit-plugin train --data FOLDER``."""
