"""Messages of anyfolder name the flags of ``vit-plugin train``."""

import pytest
from rejection import rejects

from anyfolder.errors import InputError
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.wording import option
from vit_plugin.from_folder.folder_reading import as_train_flag, naming_train_flags


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
def test_options_are_named_as_flags(name, value, words):
    assert as_train_flag(name, value) == words
    with naming_train_flags():
        assert option(name, value) == words
    assert option(name, value) != words


def test_errors_begin_with_the_flag_at_fault():
    with rejects("^--data: 'a' is wrong.$"), naming_train_flags():
        raise InputError("'a' is wrong.")
    with rejects("^--masks: 'a' is wrong.$"), naming_train_flags('--masks'):
        raise InputError("'a' is wrong.")
    with rejects("^--work-dir: 'a' is wrong.$"), naming_train_flags('--masks'):
        raise InputError("'a' is wrong.", option='work_dir')
    with rejects("^train --check: 'a' is wrong.$"), naming_train_flags():
        raise InputError("'a' is wrong.", option='decode_all')


def test_errors_of_the_library_itself_name_no_flag(tmp_path):
    (tmp_path / 'a.csv').write_text('file,xmin\n')
    with rejects("^there is no folder '.*none'"):
        Tree(tmp_path / 'none')
    with pytest.raises(InputError, match='^there are no images in'):
        read_class_folders(Tree(tmp_path))
