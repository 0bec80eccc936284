"""Files are parsed once, whatever reads them."""

import pytest
from foreign_data import cvat_voc, label_studio_yolo, roboflow_coco, roboflow_yolo, write
from image_folders import write_digits
from rejection import rejects

from anyfolder.readers import file_contents
from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.box_formats import formats_of
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.file_contents import FileContents, rejecting_malformed
from anyfolder.readers.image_tree import Tree

PARSERS = ['read_json', 'read_yaml', 'read_xml', 'read_lines']


@pytest.fixture
def parsed(monkeypatch):
    """The files that were parsed."""
    files = []
    for name in PARSERS:
        parse = getattr(file_contents, name)

        def recorded(file, *args, parse=parse, **options):
            files.append(file)
            return parse(file, *args, **options)

        monkeypatch.setattr(file_contents, name, recorded)
    return files


@pytest.mark.parametrize('write_scene', [roboflow_coco, roboflow_yolo, label_studio_yolo, cvat_voc])
def test_each_file_is_parsed_once(tmp_path, write_scene, parsed):
    write_scene(tmp_path)
    read_annotated_folder(Tree(tmp_path))
    assert parsed
    assert len(parsed) == len({*parsed})


def test_json_is_parsed_once_for_boxes_and_class_folders(tmp_path, parsed):
    write_digits(tmp_path)
    write(tmp_path, 'test.json', '["digit 0/000.png"]')
    tree = Tree(tmp_path)
    assert not formats_of(tree)  # asks the box readers first
    assert len(read_class_folders(tree).parts['test']) == 1
    assert parsed == [tmp_path / 'test.json']


def test_pixels_in_json_are_dropped(tmp_path):
    write(tmp_path, '0.json', '{"shapes": [], "imageData": "abc"}')
    assert FileContents().json(tmp_path / '0.json') == dict(shapes=[])


def test_classes_in_yaml_stay_text(tmp_path):
    write(tmp_path, 'a.yaml', 'names: [no, 007]')
    assert FileContents().yaml(tmp_path / 'a.yaml') == dict(names=['no', '007'])


def test_malformed_content_raises_one_sentence():
    with (
        rejects("'a.json' has a shape that is invalid for the format LabelMe .KeyError: .*"),
        rejecting_malformed('a.json', 'a shape', 'LabelMe'),
    ):
        {}['points']
