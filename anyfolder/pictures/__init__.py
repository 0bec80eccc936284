"""Draw labels over images, by OpenCV and Pillow."""
