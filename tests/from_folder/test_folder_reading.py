"""The sentences of anyfolder in the words of ``vit-plugin train``."""

import pytest
from image_folders import write_digits, write_voc
from rejection import rejects

from anyfolder.errors import InputError
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.wording import option
from vit_plugin.from_folder.folder_reading import as_train_flag, reading_folder
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config


@pytest.mark.parametrize(
    ('name', 'value', 'words'),
    [
        ('task', 'detection', '--task detection'),
        ('task', None, '--task'),
        ('skip_invalid', True, '--skip-invalid'),
        ('depth_scale', None, '--depth-scale'),
        ('decode_all', True, 'train --check'),
        ('window', '(0, 4095)', 'read by LoadImage(window=(0, 4095)) in training and prediction; '
         'change it in the config'),
    ],
)  # fmt: skip
def test_an_option_is_a_flag(name, value, words):
    assert as_train_flag(name, value) == words
    with reading_folder():
        assert option(name, value) == words
    assert option(name, value) != words


def test_an_error_begins_with_the_flag_of_what_is_wrong():
    with rejects("^--data: 'a' is wrong.$"), reading_folder():
        raise InputError("'a' is wrong.")
    with rejects("^--masks: 'a' is wrong.$"), reading_folder('--masks'):
        raise InputError("'a' is wrong.")
    with rejects("^--work-dir: 'a' is wrong.$"), reading_folder('--masks'):
        raise InputError("'a' is wrong.", option='work_dir')


def test_each_error_of_a_folder_begins_with_its_flag(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_voc(tmp_path / 'boxes')
    with rejects("^--data: 'boxes' has boxes as Pascal VOC; give --task detection"):
        write_config(Request('boxes'))
    with rejects("^--data: there is no folder 'none'"):
        write_config(Request('none'))
    write_digits(tmp_path / 'digits')
    with rejects("^--work-dir: 'digits/run' lies in .*; give another --work-dir, such as"):
        write_config(Request('digits', work_dir='digits/run'))


def test_the_library_alone_names_arguments(tmp_path):
    (tmp_path / 'a.csv').write_text('file,xmin\n')
    with rejects("^there is no folder '.*none'"):
        Tree(tmp_path / 'none')
    with pytest.raises(InputError, match='^there are no images in'):
        read_class_folders(Tree(tmp_path))
