"""README: its examples run as they stand, where what they import is installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from image_folders import write_coco, write_digits

import anyfolder
from anyfolder.__main__ import FORMAT_NAMES

PAGE = Path(anyfolder.__file__).with_name('README.md')
pytestmark = [
    pytest.mark.skipif(not PAGE.is_file(), reason='the page is in the repository alone'),
    pytest.mark.filterwarnings('ignore'),  # of the frameworks
]


def example_below(heading: str) -> str:
    """The first example in Python below a heading."""
    return re.findall(
        rf'^#+ {heading}\n.*?```python\n(.*?)```', PAGE.read_text(), re.MULTILINE | re.DOTALL
    )[0]


@pytest.mark.parametrize(
    ('heading', 'package', 'write'),
    [
        ('In Python', 'anyfolder', write_coco),
        ('PyTorch', 'torch', write_digits),
        ('MMDetection', 'mmdet', write_coco),
        ('ultralytics', 'ultralytics', write_coco),
    ],
)
def test_an_example_runs(tmp_path, monkeypatch, capsys, heading, package, write):
    if find_spec(package) is None:
        pytest.skip(f'{package} is not installed')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('YOLO_OFFLINE', 'true')
    write(tmp_path / 'my/folder')
    names: dict = {}
    exec(example_below(heading), names)
    if heading == 'In Python':
        assert 'square (' in capsys.readouterr().out
    elif heading == 'PyTorch':
        pixels, label = names['train'][0]
        assert (pixels.shape, label) == ((3, 8, 8), 0)
    elif heading == 'MMDetection':
        assert len(names['train']) == 9
        first = names['train'].get_data_info(0)['instances'][0]
        assert first['bbox_label'] == 0
        assert first['bbox'][2] - first['bbox'][0] == 16
    else:
        assert Path(names['train']).resolve() == (tmp_path / 'as_yolo/images/train').resolve()


def test_the_formats_and_commands_are_those_that_are_there():
    text = PAGE.read_text()
    assert all(f'`{name}`' in text for name in FORMAT_NAMES)
    assert all(f'anyfolder {name} FOLDER' in text for name in ('check', 'convert', 'show'))
