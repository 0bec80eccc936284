"""Files that come with the package, paths in configs, resizing, and text from unknown sources."""
