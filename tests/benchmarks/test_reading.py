"""The data of the campaign is what its name says."""

import json

import pytest

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from benchmarks.reading import CASES


@pytest.mark.parametrize(
    ('case', 'read', 'form', 'images'),
    [
        ('images', read_class_folders, 'folders of classes', 40),
        ('table', read_class_folders, 'images and a table of classes', 40),
        ('coco', read_annotated_folder, 'COCO', 4),
        ('labelme', read_annotated_folder, 'LabelMe', 4),
    ],
)
def test_each_case_is_read_whole(tmp_path, case, read, form, images):
    CASES[case][0](tmp_path / 'data', 4 if case == 'labelme' else 40)
    found = read(Tree(tmp_path / 'data'))
    assert (found.form, len(found.train + found.val)) == (form, images)
    assert not found.findings.rows()
    if case == 'labelme':
        assert len(json.loads((tmp_path / 'data/000.json').read_text())['imageData']) > 1e6
