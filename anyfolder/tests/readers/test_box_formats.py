"""The annotation formats that are recognized in a folder."""

import pytest
from box_scenes import BOX_SCENES, hugging_face, tensorflow
from foreign_data import cvat_coco, labelimg_yolo, write
from rejection import rejects

from anyfolder.readers.box_formats import formats_of
from anyfolder.readers.formats.table import FORMATS
from anyfolder.readers.image_tree import Tree


def names(folder, with_tables: bool = True) -> list[str]:
    return [found.name for found in formats_of(Tree(folder), with_tables)]


def test_every_format_has_a_scene():
    assert {name for name, _ in BOX_SCENES.values()} == {format.name for format in FORMATS}


@pytest.mark.parametrize('write_scene', BOX_SCENES, ids=lambda scene: scene.__name__)
def test_each_scene_has_one_format(tmp_path, write_scene):
    write_scene(tmp_path)
    assert names(tmp_path) == [BOX_SCENES[write_scene][0]]


def test_tables_count_only_without_another_format(tmp_path):
    """xml_to_csv writes them next to VOC, and class folders can have tables of their own."""
    tensorflow(tmp_path)
    assert names(tmp_path, with_tables=False) == []
    assert names(tmp_path) == ['a table']
    cvat_coco(tmp_path)
    assert names(tmp_path) == ['COCO']


def test_all_formats_of_a_folder_are_recognized(tmp_path):
    labelimg_yolo(tmp_path)
    cvat_coco(tmp_path)
    assert names(tmp_path) == ['COCO', 'YOLO']


def test_incomplete_and_invalid_json_lines_raise(tmp_path):
    hugging_face(tmp_path)
    path = tmp_path / 'train/metadata.jsonl'
    path.write_text(path.read_text().replace('["square", "bar"]', '["bar"]', 1))
    with rejects(r'jsonl.* an image or a box that is invalid for the format Hugging Face'):
        names(tmp_path)
    path.write_text('[1]\n{')
    with rejects('does not have a JSON object on each line'):
        names(tmp_path)


@pytest.mark.parametrize(('name', 'format'), [('a.json', 'JSON'), ('a.xml', 'XML')])
def test_damaged_files_raise(tmp_path, name, format):
    write(tmp_path, name, '{"images": [')
    with rejects(f'{name}. is not {format}'):
        names(tmp_path)
