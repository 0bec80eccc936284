"""External data: one reader per format, checked against the images, as one canonical listing."""
