"""Labels over images, by OpenCV and Pillow."""
