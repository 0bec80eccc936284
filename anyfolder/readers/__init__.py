"""Readers of data formats, which check labels against the images and return a listing.

There is one for each task: :mod:`.class_folders`, :mod:`.box_folders`, :mod:`.mask_folders`,
:mod:`.panoptic` and :mod:`.depth_folders`. Each takes the files of a folder (:mod:`.image_tree`),
finds the image of each label (:mod:`.identity`, :mod:`.paired_files`), and leaves the steps that
all tasks share to :mod:`.build_listing`. What is repaired, left out or wrong is collected in
:mod:`.findings`.
"""
