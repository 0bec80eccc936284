"""The data of the comparison of slices, and the score of predictions."""

import json

import pytest

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree
from benchmarks.slices import LARGE, SHAPES, SMALL, score, write


def test_tiles_are_read_as_a_folder_of_coco(tmp_path):
    for part, number in (('train', 3), ('val', 2)):
        write(tmp_path, part, number, SMALL, 0)
    data = read_annotated_folder(Tree(tmp_path))
    assert (len(data.train), len(data.val), set(data.classes)) == (3, 2, set(SHAPES))


def test_true_boxes_score_100_and_shifted_ones_0(tmp_path):
    pytest.importorskip('pycocotools')
    truth = write(tmp_path, 'large', 1, LARGE, 0)
    boxes = json.loads(truth.read_text())['annotations']
    perfect = f'AP 100.0, found {len(boxes)} of {len(boxes)}, further boxes 0'
    # Boxes that are right with a low score count for AP, but find nothing.
    unsure = f'AP 100.0, found 0 of {len(boxes)}, further boxes 0'
    for shift, confidence, expected in (
        (0, 0.9, perfect),
        (900, 0.9, 'AP 0.0, found 0'),
        (0, 0.2, unsure),
    ):
        rows = [
            {
                'class': SHAPES[box['category_id'] - 1],
                'score': confidence,
                'left': box['bbox'][0] + shift,
                'top': box['bbox'][1] - shift,
                'right': box['bbox'][0] + box['bbox'][2] + shift,
                'bottom': box['bbox'][1] + box['bbox'][3] - shift,
            }
            for box in boxes
        ]
        (tmp_path / 'predictions.json').write_text(json.dumps({'000.png': rows}))
        assert score(truth, tmp_path / 'predictions.json').startswith(expected)
    (tmp_path / 'predictions.json').write_text(json.dumps({'000.png': []}))
    nothing = f'AP 0.0, found 0 of {len(boxes)}, further boxes 0'
    assert score(truth, tmp_path / 'predictions.json') == nothing
