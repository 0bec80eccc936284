"""WIDER FACE's lists of boxes."""

from pathlib import Path

import pytest

from anyfolder.readers.formats.wider_face import is_wider_face, parse_wider_face

FILE = Path('wider_face_train_bbx_gt.txt')
FACES = ['0--Parade/0.jpg', '2', '4 6 20 24 0 0 0 0 0 0', '1 2 3 4 0 0 0 1 0 0']


def test_boxes_follow_the_name_of_their_image():
    assert is_wider_face(FACES, FILE)
    first, empty = parse_wider_face([*FACES, '0--Parade/1.jpg', '0', '0 ' * 10], FILE).images
    assert [found.box for found in first.objects] == [[4, 6, 20, 24], [1, 2, 3, 4]]
    assert [found.crowd for found in first.objects] == [False, True]
    assert (empty.name, empty.objects) == ('0--Parade/1.jpg', [])


@pytest.mark.parametrize('count', ['3', '-1', 'x'])
def test_wrong_numbers_of_boxes_raise(count):
    """A number below -1 would lead back to lines that were read."""
    with pytest.raises(ValueError, match=r'announces|invalid literal'):
        parse_wider_face([FACES[0], count, *FACES[2:]], FILE)
