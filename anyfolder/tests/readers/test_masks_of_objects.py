"""Images with several masks each raise an error that suggests a layout, whatever the task is."""

import pytest
from public_scene import Scene
from unclear_scenes import masks_of_objects

import anyfolder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.masks_of_objects import check_masks_of_objects


@pytest.mark.parametrize('task', [None, 'segmentation', 'instance'])
def test_suggested_layout_reads_the_objects(tmp_path, task):
    masks_of_objects(Scene(tmp_path))
    with pytest.raises(anyfolder.InputError, match='may show one object each') as raised:
        anyfolder.read(tmp_path, task)
    (tmp_path / 'anyfolder.yaml').write_text(str(raised.value).partition('such as:\n\n')[2])
    data = anyfolder.read(tmp_path, 'instance')
    boxes = {tuple(instance.box) for _, image in data.images() for instance in image.objects}
    assert boxes == {(1, 5, 7, 10), (9, 5, 7, 10)}
    assert data.classes == ('object',)


def test_one_mask_per_image_is_accepted(tmp_path):
    masks_of_objects(Scene(tmp_path), 1)
    check_masks_of_objects(Tree(tmp_path))
