"""Only files that a run wrote into its folder are published."""

import io
import json
import os
from pathlib import Path

import pytest
from PIL import Image
from rejection import rejects

from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.deploy.hub.run_files import (
    RUN_FILE_SCHEMAS,
    check_not_linked,
    read_json,
    read_picture,
    read_regular_file,
)

SECRET = '-----BEGIN PRIVATE KEY-----\n'


@pytest.fixture
def secret(tmp_path) -> Path:
    path = tmp_path / 'key'
    path.write_text(SECRET)
    return path


@pytest.mark.parametrize('name', ['learning_curve.png', *RUN_FILE_SCHEMAS])
@pytest.mark.parametrize('kind', ['link', 'copy', 'pipe', 'folder'])
def test_files_that_a_run_does_not_write_are_refused(saved, tmp_path, secret, name, kind):
    """Links, other files under a known name, pipes (reading would block) and folders."""
    run = saved().parent
    if kind == 'link':
        (run / name).symlink_to(secret)
    elif kind == 'copy':
        (run / name).write_text(SECRET)
    elif kind == 'pipe':
        os.mkfifo(run / name)
    else:
        (run / name).mkdir()
    (run / 'classes.md').symlink_to(secret)  # this name is never read
    with rejects(rf'{name}. is (a link|not|no PNG)'):
        publish(str(run), str(tmp_path / 'pets'))
    assert not (tmp_path / 'pets').exists()


def test_checkpoints_that_are_links_are_refused(saved, tmp_path):
    path = saved()
    path.rename(tmp_path / 'private.pth')
    path.symlink_to(tmp_path / 'private.pth')
    with rejects(r'epoch_3\.pth. is a link'):
        publish(str(path.parent), str(tmp_path / 'pets'))
    publish(str(path), str(tmp_path / 'pets'))  # a checkpoint that is named itself may be a link
    (tmp_path / 'pets/model.safetensors').rename(tmp_path / 'moved')
    (tmp_path / 'pets/model.safetensors').symlink_to(tmp_path / 'moved')
    with rejects(r'model\.safetensors. is a link'):
        publish(str(tmp_path / 'pets'), str(tmp_path / 'republished'))


def test_links_in_a_folder_below_the_home_are_refused(tmp_path, secret, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'run').mkdir()
    path = tmp_path / 'run/epoch_3.pth'
    path.symlink_to(secret)
    with rejects(r'epoch_3.pth. is a link'):
        check_not_linked('~/run', str(path))


def test_pictures_are_published_as_pixels_only(tmp_path):
    Image.new('RGB', (4, 4), 'blue').save(tmp_path / 'x.png')
    with open(tmp_path / 'x.png', 'ab') as file:
        file.write(SECRET.encode())
    content = read_picture(tmp_path, 'x.png')
    assert SECRET.encode() not in content
    with Image.open(io.BytesIO(content)) as image:
        assert image.getpixel((0, 0)) == (0, 0, 255, 255)
    Image.new('RGB', (4, 4)).save(tmp_path / 'x.jpg')
    (tmp_path / 'x.jpg').rename(tmp_path / 'y.png')
    with rejects('is no PNG'):
        read_picture(tmp_path, 'y.png')


@pytest.mark.parametrize(
    'content', [[], dict(last={}), dict(last=dict(a='b'), best=dict(a=1)), '[' * 10_000]
)
def test_json_of_another_structure_is_refused(tmp_path, content):
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / 'metrics.json').write_text(text)
    with rejects(r'is not the metrics\.json that a run writes'):
        read_json(tmp_path, 'metrics.json')


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('metrics.json', dict(last=dict(a=1.0), best={})),
        ('metrics.json', dict(last={}, best={}, epochs=3)),
        ('classes.json', dict(per_class=[dict(samples=4), dict(f1=9.0)], macro=dict(f1=9.0))),
        ('classes.json', dict(per_class=[dict(samples='4')], macro=dict(f1=9.0))),
        ('classes.json', dict(per_class=[dict(samples=4)], macro={})),
        (
            'data_report.json',
            dict(
                form='class folders',
                classes=['cat', 'dog'],
                parts=dict(train=dict(images=3, by_class=dict(cat=3))),
                findings=[],
            ),
        ),
    ],
)
def test_json_without_an_entry_that_another_needs_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(json.dumps(content))
    with rejects('is not the .* that a run writes'):
        read_json(tmp_path, name)


def test_missing_files_are_empty(tmp_path):
    assert read_regular_file(tmp_path, 'x') is None
    assert read_json(tmp_path, 'metrics.json') == {}
    assert read_picture(tmp_path, 'x.png') is None
