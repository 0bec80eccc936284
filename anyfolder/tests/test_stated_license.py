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
        ('data.yaml', 'license:\n', ''),
        ('data.yaml', 'license:\nroboflow:\n  license: MIT\n', 'mit'),
        ('data.yaml', 'roboflow: [', ''),
        ('data.yaml', 'license: Apache License 2.0\n', 'apache-2.0'),
        ('data.yaml', 'license: apache-license-2.0\n', 'apache-2.0'),
        ('data.yaml', 'license: mit_license\n', 'mit'),
        ('data.yaml', 'license: by_nc_sa_4.0\n', 'cc-by-nc-sa-4.0'),
        ('data.yaml', 'license: BY-NC-SA\n', 'cc-by-nc-sa'),
        ('README.dataset.txt', '# cells\nLicense: BY-NC-SA 4.0\n', 'cc-by-nc-sa-4.0'),
        ('README.dataset.txt', '# cells\nLicense: Private\n', 'private'),
        ('README.md', 'License: CC BY 4.0 for some\n', 'cc-by-4.0-for-some'),
        ('train/_annotations.coco.json', coco('Public Domain'), 'public-domain'),
        ('train/_annotations.coco.json', coco('CC BY 4.0', 'MIT'), ''),
        ('annotations.json', '{"licenses": 3}', ''),
        ('LICENSE', '\n  MIT License\n\nCopyright\n', 'mit'),
        ('LICENSE', 'Apache License\n  Version 2.0, January 2004\n\nTERMS\n', 'apache-2.0'),
        ('LICENSE', 'GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n\nx\n', 'gpl-3.0'),
        ('LICENSE', 'BSD 3-Clause License\n\nCopyright\n\nx\n', 'bsd-3-clause'),
        ('LICENSE', 'Attribution 4.0 International\n\n=====\n\nx\n\ny', 'cc-by-4.0'),
        ('LICENSE', 'Creative Commons Legal Code\n\nCC0 1.0 Universal\n\nx', 'cc0-1.0'),
        (
            'LICENSE.txt',
            'Creative Commons Attribution-NonCommercial-ShareAlike 4.0 International\n\nx\n\ny',
            'cc-by-nc-sa-4.0',
        ),
        ('LICENSE', 'The MIT License (MIT)\n\nCopyright\n\nx\n', 'mit'),
        (
            'LICENSE',
            'GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1, February 1999\n\nx\n',
            'lgpl-2.1',
        ),
        (
            'LICENSE',
            'Creative Commons Legal Code\n\nAttribution 3.0 Unported\n\nx\n\ny',
            'cc-by-3.0',
        ),
        ('LICENSE', 'Apache-2.0\nNOTICE\n\nx\n', 'apache-2.0'),
        (
            'LICENSE',
            'Non-Commercial Research License\n\nCopyright\n\nx\n',
            'non-commercial-research-license',
        ),
        ('LICENSE.md', '# MIT License\n\nCopyright\n\nx\n', 'mit'),
        ('LICENSE', 'CC BY 4.0\n', 'cc-by-4.0'),
        ('LICENSE', 'Copyright (c) 2020 A. Author\n\nAll rights reserved.\n', ''),
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


def test_folders_and_broken_links_named_like_annotations_state_no_license(tmp_path):
    (tmp_path / 'annotations/a.json').mkdir(parents=True)
    (tmp_path / 'annotations/b.json').symlink_to(tmp_path / 'gone')
    assert stated_license(tmp_path) == ''


def test_file_without_permission_states_no_license(tmp_path, monkeypatch):
    def deny(path):
        raise PermissionError(13, 'Permission denied', str(path))

    (tmp_path / 'LICENSE').write_text('MIT License')
    monkeypatch.setattr('anyfolder.stated_license.read_text', deny)
    assert stated_license(tmp_path) == ''
