"""The data of both sides are the same."""

import numpy as np
from image_folders import write_voc

from benchmarks.yolo import as_yolo
from vit_plugin.from_folder.readers.annotated import read_annotated_folder
from vit_plugin.from_folder.readers.image_tree import Tree


def test_boxes_of_coco_are_those_that_ultralytics_reads(tmp_path):
    voc = read_annotated_folder(Tree(write_voc(tmp_path / 'voc', train=10)))
    for split, photos in voc.parts.items():
        (tmp_path / f'{split}.json').write_text(voc.as_coco(photos))
    data = as_yolo(tmp_path, voc.root, tmp_path / 'yolo')
    yolo = read_annotated_folder(Tree(data.parent))
    assert yolo.classes == voc.classes
    assert [len(photos) for photos in yolo.parts.values()] == [
        len(photos) for photos in voc.parts.values()
    ]
    np.testing.assert_allclose(
        *(np.sort(each.relative_boxes, axis=0) for each in (yolo, voc)), atol=1e-6
    )
