"""The license that a folder states, in the files of Roboflow, COCO and others."""

import json
from pathlib import Path

import pytest

from anyfolder.stated_license import stated_license


def coco(*names: str) -> str:
    licenses = [dict(id=i, name=name, url='') for i, name in enumerate(names)]
    return json.dumps(dict(info={}, licenses=licenses, images=[], annotations=[], categories=[]))


@pytest.mark.parametrize(
    ('file', 'content', 'license'),
    [
        ('data.yaml', 'nc: 1\nroboflow:\n  license: CC BY 4.0\n', 'cc-by-4.0'),
        ('data.yaml', 'nc: 1\n', ''),
        ('data.yaml', 'roboflow: [', ''),
        ('README.dataset.txt', '# cells\nLicense: BY-NC-SA 4.0\n', 'cc-by-nc-sa-4.0'),
        ('train/_annotations.coco.json', coco('Public Domain'), 'public-domain'),
        ('train/_annotations.coco.json', coco('CC BY 4.0', 'MIT'), ''),
        ('annotations.json', '{"licenses": 3}', ''),
        ('LICENSE', '\n  MIT License\n\nCopyright\n', 'mit'),
        ('LICENSE', 'x' * 200, ''),
        ('LICENSE', 'a\x1b[2Jb', ''),
        ('other.txt', 'License: MIT', ''),
    ],
)
def test_license_is_read_from_known_files(file, content, license, tmp_path):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    assert stated_license(tmp_path) == license


def test_missing_folder_states_no_license():
    assert stated_license(Path('no/folder')) == ''
