"""The examples of anyfolder's README run unchanged, if the package they import is installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from image_folders import write_coco, write_digits

import anyfolder
from anyfolder.__main__ import FORMAT_NAMES

PAGE = Path(anyfolder.__file__).with_name('README.md')
pytestmark = [
    pytest.mark.skipif(not PAGE.is_file(), reason='the page is only in the repository'),
    pytest.mark.filterwarnings('ignore'),  # the frameworks' warnings
]


def example_below(heading: str) -> str:
    """The first example in Python below a heading."""
    return re.findall(
        rf'^#+ {heading}\n.*?```python\n(.*?)```', PAGE.read_text(), re.MULTILINE | re.DOTALL
    )[0]


def check_reading(names: dict, printed: str) -> None:
    assert 'square (' in printed


def check_pytorch(names: dict, printed: str) -> None:
    pixels, label = names['train'][0]
    assert (pixels.shape, label) == ((3, 8, 8), 0)


def check_mmdetection(names: dict, printed: str) -> None:
    assert len(names['train']) == 9
    square = names['train'].get_data_info(0)['instances'][0]
    left, _, right, _ = square['bbox']
    assert square['bbox_label'] == 0
    assert right - left == 16


def check_ultralytics(names: dict, printed: str) -> None:
    assert Path(names['train']).resolve() == Path('as_yolo/images/train').resolve()


@pytest.mark.parametrize(
    ('heading', 'package', 'write', 'check'),
    [
        ('In Python', 'anyfolder', write_coco, check_reading),
        ('PyTorch', 'torch', write_digits, check_pytorch),
        ('MMDetection', 'mmdet', write_coco, check_mmdetection),
        ('ultralytics', 'ultralytics', write_coco, check_ultralytics),
    ],
)
def test_examples_run(tmp_path, monkeypatch, capsys, heading, package, write, check):
    if find_spec(package) is None:
        pytest.skip(f'{package} is not installed')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('YOLO_OFFLINE', 'true')
    write(tmp_path / 'my/folder')
    names: dict = {}
    exec(example_below(heading), names)
    check(names, capsys.readouterr().out)


def test_readme_names_all_formats_and_commands():
    text = PAGE.read_text()
    assert all(f'`{name}`' in text for name in FORMAT_NAMES)
    assert all(f'anyfolder {name} FOLDER' in text for name in ('check', 'convert', 'show'))
