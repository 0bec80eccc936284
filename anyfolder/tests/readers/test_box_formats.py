"""The pass over the files of a folder that tells their formats."""

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
def test_a_scene_is_of_one_format(tmp_path, write_scene):
    write_scene(tmp_path)
    assert names(tmp_path) == [BOX_SCENES[write_scene][0]]


def test_tables_are_only_asked_where_there_is_no_other_format(tmp_path):
    """xml_to_csv writes them beside VOC, and folders of classes have tables of their own."""
    tensorflow(tmp_path)
    assert names(tmp_path, with_tables=False) == []
    assert names(tmp_path) == ['a table']
    cvat_coco(tmp_path)
    assert names(tmp_path) == ['COCO']


def test_several_formats_are_all_found(tmp_path):
    labelimg_yolo(tmp_path)
    cvat_coco(tmp_path)
    assert names(tmp_path) == ['COCO', 'YOLO']


def test_properties_of_unequal_length_are_an_error(tmp_path):
    hugging_face(tmp_path)
    path = tmp_path / 'train/metadata.jsonl'
    path.write_text(path.read_text().replace('["square", "bar"]', '["bar"]', 1))
    with rejects(r'jsonl.* an image or a box that is incomplete for the format Hugging Face'):
        names(tmp_path)
    path.write_text('[1]\n{')
    with rejects('does not have a JSON object on each line'):
        names(tmp_path)


@pytest.mark.parametrize('name', ['a.json', 'a.xml'])
def test_a_damaged_file_is_an_error(tmp_path, name):
    write(tmp_path, name, '{"images": [')
    with rejects(f'{name}. is not {name[2:].upper()}'):
        names(tmp_path)
