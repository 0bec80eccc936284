"""Pixels of images, bands, slices and depth in files, by OpenCV and Pillow."""
