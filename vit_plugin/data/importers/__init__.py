"""Other people's data: one reader per form, checked against the images, as one canonical listing."""
