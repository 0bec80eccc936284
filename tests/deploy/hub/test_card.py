"""A model card has what the files of a run state, and no file names or paths."""

import json
from types import SimpleNamespace

import pytest
import yaml
from mmengine.config import Config
from PIL import Image
from torch import nn

from vit_plugin.deploy.hub.card import Card
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.files.untrusted_text import escape_markdown
from vit_plugin.weights.provenance import Provenance

NAME = '![](https://example.org/beacon.png) | cat'  # markup that a card must escape
REPORT = dict(
    form='class folders',
    folder='/home/somebody',
    classes=['cat', 'dog'],
    parts=dict(
        train=dict(images=7, by_class=dict(cat=3, dog=4)),
        val=dict(images=2, by_class=dict(cat=1, dog=1)),
    ),
    findings=[dict(what='is no image', count=2, examples=['somebody/1.jpg', 'somebody/2.jpg'])],
)
SCORES = dict(per_class=[dict(name=NAME, f1=90.0, samples=4)], macro=dict(f1=90.0))
METRICS = dict(
    last={'accuracy/top1': 91.25},
    best={'accuracy/top1': 92.5},
    epochs=3,
    iterations=30,
    seconds=12.3,
)


def test_a_card_describes_the_run(saved, tmp_path):
    run = saved().parent
    (run / 'last_checkpoint').write_text(str(run / 'epoch_3.pth'))
    (run / 'metrics.json').write_text(json.dumps(METRICS))
    (run / 'data_report.json').write_text(json.dumps(REPORT))
    (run / 'classes.json').write_text(json.dumps(SCORES))
    Image.new('RGBA', (3, 2), 'red').save(run / 'learning_curve.png')
    publish(str(run), str(tmp_path / 'pets'), license='apache-2.0')
    _, head, text = (tmp_path / 'pets/README.md').read_text().split('---\n', 2)
    metadata = yaml.safe_load(head)
    assert metadata['license'] == 'apache-2.0'
    assert metadata['library_name'] == 'timm'
    assert metadata['model-index'][0]['results'][0]['metrics'] == [
        dict(type='accuracy/top1', value=91.25)
    ]
    for line in (
        '# pets',
        "print(vit_plugin.load('hf://USER/pets')('photo.jpg'))",
        "model = timm.create_model('hf_hub:USER/pets', pretrained=True).eval()",
        '3 classes: cat, dog, rabbit.',
        '| accuracy/top1 | 91.25 | 92.50 |',
        f'| {escape_markdown(NAME)} | 90.00 | 4 |',
        '![learning curve](learning_curve.png)',
        '| images | 7 | 2 |',
        '| dog | 4 | 1 |',
        '### is no image: 2',
    ):
        assert line in text.splitlines()
    assert 'somebody' not in text
    with Image.open(tmp_path / 'pets/learning_curve.png') as picture:
        assert (picture.size, picture.getpixel((0, 0))) == ((3, 2), (255, 0, 0, 255))


def test_a_card_states_the_license_of_the_checkpoint(saved, tmp_path):
    publish(str(saved()), str(tmp_path / 'pets'), license='apache-2.0')
    publish(str(tmp_path / 'pets'), str(tmp_path / 'again'))
    publish(str(tmp_path / 'pets'), str(tmp_path / 'other'), license='mit')
    for name, license in (('again', 'apache-2.0'), ('other', 'mit')):
        text = (tmp_path / name / 'README.md').read_text()
        assert f'license: {license}' in text.splitlines()
        assert f'`{license}`. Weights and data' in text


@pytest.mark.parametrize(
    ('task', 'lines'),
    [
        ('depth', ['| validation | last | best |', '| AbsRel | 0.05123 | 0.05 |']),
        ('detection', ['| validation, per cent | last | best |', '| AbsRel | 0.05 | 0.05 |']),
    ],
)
def test_metrics_of_depth_are_not_per_cent(tmp_path, task, lines):
    metrics = dict(last=dict(AbsRel=0.05123), best=dict(AbsRel=0.05))
    (tmp_path / 'metrics.json').write_text(json.dumps(metrics))
    trained = SimpleNamespace(task=task, model=None)
    card = Card(trained, str(tmp_path / 'a.pth'), 'me/a', None, 0.0, None, Provenance('a.pth'))
    assert {*lines} <= {*'\n'.join(card._results()).splitlines()}


def test_a_card_names_a_model_without_a_backbone(tmp_path):
    cfg = Config(dict(model=dict(type='TimmClassifier')))
    trained = SimpleNamespace(task='classification', model=nn.Identity(), cfg=cfg)
    card = Card(trained, str(tmp_path / 'a.pth'), 'me/a', None, 0.0, None, Provenance('a.pth'))
    assert 'Identity, 0.00 M parameters, trained with' in '\n'.join(card._head())


def test_a_card_leaves_out_unknown_facts(saved, tmp_path):
    publish(str(saved()), str(tmp_path / 'pets'))
    text = (tmp_path / 'pets/README.md').read_text()
    assert 'license:' not in text
    assert 'model-index' not in text
    assert 'no record of a validation' in text
    assert 'no report of its data' in text
    assert 'The config of the training names `start.pth` to begin with.' in text
    publish(str(tmp_path / 'pets'), str(tmp_path / 'republished'))
    assert 'it is not known what it began with' in (tmp_path / 'republished/README.md').read_text()
