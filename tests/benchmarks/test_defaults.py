"""The data sets on which the defaults are measured."""

import json

import numpy as np
from image_folders import write_digits, write_voc
from PIL import Image

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.mask_folders import read_mask_folder
from benchmarks.defaults import SHAPES, SMALL, write_coco, write_few, write_instances, write_scenes


def test_scenes_have_every_shape_in_their_masks(tmp_path):
    write_scenes(tmp_path / 'scenes', train=12, val=2)
    data = read_mask_folder(Tree(tmp_path / 'scenes'))
    assert (len(data.train), len(data.val), data.classes) == (12, 2, SHAPES)
    masks = [np.array(Image.open(path)) for path in (tmp_path / 'scenes/masks/train').iterdir()]
    assert set(np.unique(masks)) == set(range(len(SHAPES)))


def test_small_scenes_have_fewer_pixels_of_shapes(tmp_path):
    for name, sizes in (('scenes', {}), ('small', SMALL)):
        write_scenes(tmp_path / name, train=12, val=1, **sizes)
    shares = [
        np.mean([np.array(Image.open(path)) > 0 for path in sorted(folder.iterdir())])
        for folder in (tmp_path / 'scenes/masks/train', tmp_path / 'small/masks/train')
    ]
    normal, small = shares
    assert 0 < small < normal / 3


def test_few_images_share_none_with_validation(tmp_path):
    write_digits(tmp_path / 'all/train', per_class=70, classes=6)
    write_digits(tmp_path / 'all/val', per_class=3, classes=6)
    for seed, held_out in ((0, 15), (1, 50)):
        write_few(tmp_path / 'all', tmp_path / f'few{seed}', seed)
        data = read_class_folders(Tree(tmp_path / f'few{seed}'), tmp_path / 'run')
        assert (len(data.classes), len(data.train), len(data.val)) == (5, 300, held_out)
    names = [
        {path.resolve() for path in (tmp_path / 'few1' / part).rglob('*.png')}
        for part in ('train', 'val')
    ]
    assert not names[0] & names[1]


def test_voc_as_coco_has_the_same_boxes(tmp_path):
    voc = write_voc(tmp_path / 'voc', train=10)
    write_coco(voc, tmp_path / 'coco', hold_out=False)
    source, written = (read_annotated_folder(Tree(folder)) for folder in (voc, tmp_path / 'coco'))
    assert source.classes == written.classes
    assert np.array_equal(source.relative_boxes, written.relative_boxes)
    content = json.loads((tmp_path / 'coco/annotations/instances_val.json').read_text())
    assert content['annotations'][0]['bbox'][2:] == [16, 16]
    write_coco(voc, tmp_path / 'held_out', hold_out=True)
    held_out = read_annotated_folder(Tree(tmp_path / 'held_out'))
    assert (len(held_out.train), len(held_out.val)) == (8, 2)


def test_instances_are_read_without_findings(tmp_path):
    write_instances(tmp_path, train=3, val=2)
    data = read_annotated_folder(Tree(tmp_path), with_masks=True)
    assert not data.findings.rows()
    assert {instance.name for photo in data.train for instance in photo.instances} <= {*SHAPES}
