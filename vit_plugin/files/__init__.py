"""Files that are written completely or not at all, and those that come with the package."""
