"""Texts next to images that may hold their classes."""

import pytest
from public_scene import Scene

from anyfolder.readers.image_tree import Tree
from anyfolder.readers.texts_with_classes import texts_of_classes

CLASSES = [['cat'], ['dog']] * 6


@pytest.mark.parametrize(
    ('lines', 'count'),
    [
        (CLASSES, 12),
        (CLASSES[:5], 0),  # texts of few images
        ([['cat']] * 12, 0),  # one class
        ([[f'caption {i}'] for i in range(12)], 0),
        ([['cat', 'dog'], ['dog']] * 6, 0),  # several lines
    ],
)
def test_texts_of_one_line_that_several_images_share_are_classes(tmp_path, lines, count):
    scene = Scene(tmp_path)
    scene.images(*(f'{i}.jpg' for i in range(12)))
    for i, lines_of_text in enumerate(lines):
        scene.text(f'{i}.txt', *lines_of_text)
    pairs = texts_of_classes(Tree(tmp_path))
    assert len(pairs) == count
    assert all(image.stem == text.stem for image, text in pairs)
