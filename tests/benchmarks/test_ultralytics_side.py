"""Both programs of the comparison with ultralytics have the same data and the same unit of AP."""

import numpy as np
from image_folders import write_voc

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree
from benchmarks.ultralytics_side import ap_over_minutes, as_yolo, ultralytics


def test_boxes_for_ultralytics_equal_those_of_coco(tmp_path):
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
        np.sort(yolo.relative_boxes, axis=0), np.sort(voc.relative_boxes, axis=0), atol=1e-6
    )


def test_ap_of_both_programs_is_in_percent_over_minutes(tmp_path):
    ours, theirs = tmp_path / 'ours', tmp_path / 'theirs'
    for folder, text in (
        (ours, 'epoch,seconds,coco/bbox_mAP\n1,30,\n2,60,24.5\n'),
        (theirs, 'epoch,time,metrics/mAP50-95(B)\n1,60,0.245\n'),
    ):
        folder.mkdir()
        (folder / 'results.csv').write_text(text)
    assert ap_over_minutes(ours) == ap_over_minutes(theirs) == [(1, 24.5)]


def test_a_model_that_finds_nothing_has_no_ap(tmp_path):
    (tmp_path / 'run/val').mkdir(parents=True)
    (tmp_path / 'run/val/predictions.json').write_text('[]')
    yolo = ultralytics('yolo', 'yolo11n', tmp_path / 'data.yaml', tmp_path, 64)
    assert yolo.evaluate(tmp_path / 'run', lambda command: 0.0) == dict(AP=0.0, AP50=0.0)
