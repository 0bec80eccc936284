"""Settings are written as text that is read back the same, with a description."""

from pathlib import Path

import pytest
from image_folders import write_digits
from mmengine.config import Config

from vit_plugin.from_folder.recipe import PlannedConfig, Reference, config_text
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config


def test_written_settings_are_read_back():
    steps = [
        dict(type='A', scale=(1, 2)),
        dict(type='B' * 60, name='C' * 60, one=(1,), none=None, yes=True),
    ]
    loader = dict(
        pipeline=Reference('steps'),
        lr=1e-5,
        empty=dict(),
        deep=dict(names=[f'name {i}' for i in range(40)]),
    )
    sections = dict(
        classes=['a', "b's", 'c"d'], steps=steps, loader=loader, other=Reference('loader')
    )
    text = config_text(
        PlannedConfig('A title.', 'What it does. ' * 20, sections, [], {}),
        Request('my data', arch='B/16', epochs=3),
    )
    cfg = Config.fromstring(text, '.py').to_dict()
    written = dict(loader, pipeline=steps)
    assert {name: cfg[name] for name in sections} == dict(sections, loader=written, other=written)
    assert 'pipeline=steps' in text
    assert 'other = loader\n' in text
    assert "--data 'my data' --arch B/16 --epochs 3 --work-dir 'work_dirs/my data'" in text


@pytest.mark.parametrize(
    ('flags', 'has_hint'),
    [
        (dict(img_size=96), True),
        (dict(img_size=64), False),  # thumbnails
    ],
)
def test_few_photographs_get_a_hint_to_pretrained_weights(flags, has_hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / 'data', per_class=2)
    write_config(Request('data', **flags))
    text = ' '.join(Path('work_dirs/data/config.py').read_text().split())
    assert ('scratch: --weights timm://vit_small_patch16_224.' in text) == has_hint
