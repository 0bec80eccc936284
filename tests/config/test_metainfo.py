"""The classes that the class and the config of a data set state."""

from vit_plugin.config.metainfo import stated_metainfo


def test_the_config_has_priority_over_the_class():
    of_class = dict(classes=('a', 'b'), palette=[(0, 0, 0)])
    assert stated_metainfo({}, of_class) == of_class
    dataset = dict(metainfo=dict(classes=('c',)))
    assert stated_metainfo(dataset, of_class) == dict(classes=('c',), palette=[(0, 0, 0)])
    assert stated_metainfo(dict(metainfo=None), {}) == {}


def test_names_in_a_text_file_are_read_unless_no_file_may_be_opened(tmp_path):
    (tmp_path / 'classes.txt').write_text('cell\nplatelet\n')
    dataset = dict(metainfo=dict(classes=str(tmp_path / 'classes.txt')))
    assert stated_metainfo(dataset, {})['classes'] == ['cell', 'platelet']
    assert stated_metainfo(dataset, {}, opens_files=False)['classes'] == []
    assert stated_metainfo(dict(metainfo=dict(classes='cell')), {})['classes'] == 'cell'
