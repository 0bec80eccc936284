"""Configs in YAML or JSON are read as data, within limits."""

import json

import pytest
from rejection import rejects

from vit_plugin.config import read_config

MODEL = 'model:\n  type: ImageClassifier\n'
# Each line doubles the number of values: 2^31 in 31 lines.
ALIASES = 'a0: &a0 [x, x]\n' + ''.join(
    f'a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n' for i in range(1, 31)
)


@pytest.mark.parametrize(
    ('name', 'text', 'words'),
    [
        ('x.yaml', '!!python/object/apply:os.mkdir [ran]', 'not YAML of plain values .*os.mkdir'),
        ('x.yml', 'a: !!python/name:os.mkdir', 'not YAML of plain values'),
        (
            'x.yaml',
            ALIASES + MODEL,
            'more than 250,000 values of YAML, including those that its aliases',
        ),
        ('x.json', '[' * 100_000, 'more than 100 levels of JSON|is not JSON'),
        ('x.yaml', '- a', 'has a list, where a mapping'),
        ('x.yaml', f'_base_: base.py\n{MODEL}', 'its base .base.py. is a program'),
        ('x.yaml', f'custom_imports: {{imports: [mine]}}\n{MODEL}', "imports the module 'mine'"),
    ],
)
def test_configs_with_code_or_too_many_values_raise(tmp_path, monkeypatch, name, text, words):
    monkeypatch.chdir(tmp_path)
    for program in ('base.py', 'mine.py'):
        (tmp_path / program).write_text("import os\nos.mkdir('ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / name).write_text(text)
    with rejects(f'{name}.* {words}'):
        read_config(name)
    assert not (tmp_path / 'ran').exists()


def test_plain_configs_are_read(tmp_path):
    (tmp_path / 'base.yaml').write_text(MODEL + 'lr: 0.1\nrate: &a {x: [1, no]}\n')
    (tmp_path / 'x.json').write_text(json.dumps(dict(_base_='./base.yaml', lr=0.2)))
    cfg = read_config(str(tmp_path / 'x.json'))
    assert (cfg.model.type, cfg.lr, cfg.rate.x) == ('ImageClassifier', 0.2, [1, False])


def test_recipes_of_the_package_may_be_the_base(tmp_path):
    path = tmp_path / 'x.yaml'
    path.write_text('_base_: vit_plugin::vit/vit-mini-p2_1xb16_digits.py\nseed: 1\n')
    assert read_config(str(path)).seed == 1


def test_mmengines_readers_are_restored(tmp_path):
    import mmengine

    (tmp_path / 'x.json').write_text('[1]')
    with rejects('has a list'):
        read_config(str(tmp_path / 'x.json'))
    assert mmengine.load(tmp_path / 'x.json') == [1]
