"""Images with several masks each are a question, whatever the task is."""

import pytest
from public_scene import Scene
from unclear_scenes import masks_of_objects

import anyfolder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.masks_of_objects import check_masks_of_objects


@pytest.mark.parametrize('task', [None, 'segmentation', 'instance'])
def test_the_lines_of_the_question_read_the_objects(tmp_path, task):
    masks_of_objects(Scene(tmp_path))
    with pytest.raises(anyfolder.InputError, match='may show one object each') as raised:
        anyfolder.read(tmp_path, task)
    (tmp_path / 'anyfolder.yaml').write_text(str(raised.value).partition('such as:\n\n')[2])
    found = anyfolder.read(tmp_path, 'instance')
    boxes = {tuple(one.box) for _, image in found.images() for one in image.objects}
    assert boxes == {(1, 5, 7, 10), (9, 5, 7, 10)}
    assert found.classes == ('object',)


def test_one_mask_of_each_image_is_no_question(tmp_path):
    masks_of_objects(Scene(tmp_path), 1)
    check_masks_of_objects(Tree(tmp_path))
