"""A config generated for a folder of data: ``vit-plugin train --data FOLDER``."""
