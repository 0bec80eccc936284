"""The images of a listing as annotation files of the frameworks."""

import os
from pathlib import Path

import pytest
from image_folders import write_digits
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from vit_plugin.from_folder.framework_lists import as_data_list, as_text_list


def test_line_has_a_path_and_a_class_number(tmp_path):
    listing = read_class_folders(Tree(write_digits(tmp_path)))
    line = as_text_list(listing, listing.train, with_labels=True).splitlines()[0]
    assert line == f'{listing.name_of(listing.train[0])} 0'
    assert as_text_list(listing, listing.train, with_labels=False).splitlines()[0] == line[:-2]


@pytest.mark.parametrize('name', ['digit\n1', ' digit'])
def test_paths_that_a_line_cannot_hold_raise(tmp_path, name):
    write_digits(tmp_path)
    (tmp_path / 'digit 0').rename(tmp_path / name)
    listing = read_class_folders(Tree(tmp_path))
    with rejects('^--data: the path .* has a line break or begins with a space'):
        as_text_list(listing, listing.train, with_labels=True)


def test_json_holds_paths_that_are_not_utf_8(tmp_path):
    write_digits(tmp_path)
    os.rename(os.fsencode(tmp_path / 'digit 0'), os.fsencode(tmp_path) + b'/b\xe4r')
    listing = read_class_folders(Tree(tmp_path))
    content = as_data_list(listing, listing.train)
    assert content.isascii()
    first = listing.name_of(listing.train[0])
    assert Path(listing.root, first).is_file()
    assert f'"img_path": "b\\udce4r/{Path(first).name}", "gt_label": 0' in content


def test_held_out_class_without_training_images_raises(tmp_path):
    """A class whose images are one group may be held out as a whole."""
    listing = read_class_folders(Tree(write_digits(tmp_path)))
    listing.val[0].labels = ('digit 9',)
    words = "^--data: .* no image to train on has its class 'digit 9'; add other groups"
    with rejects(words):
        as_text_list(listing, listing.val, with_labels=True)
    with rejects(words):
        as_data_list(listing, listing.val)
