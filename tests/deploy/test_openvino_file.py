"""Models in OpenVINO's format: equal outputs, and two files that are replaced together."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from rejection import rejects
from torch import nn

from vit_plugin.deploy.openvino_file import weights_of_openvino, write_openvino
from vit_plugin.deploy.runtimes import METADATA_KEY, InOpenVino

pytest.importorskip('openvino')
pytest.importorskip('onnxscript')
FACTS = json.dumps(dict(classes=['<a & "b">', 'ä'], rgb=True))


@pytest.fixture(scope='module')
def program() -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return torch.export.export(model.eval(), (torch.rand(1, 3, 8, 12),))


@pytest.mark.parametrize(('dtype', 'tolerance'), [('float32', 1e-5), ('float16', 1e-2)])
def test_files_have_the_models_outputs_names_and_metadata(program, tmp_path, dtype, tolerance):
    path = tmp_path / 'model.xml'
    run = write_openvino(program, path, dtype, ('logits',), {METADATA_KEY: FACTS})
    images = torch.rand(1, 3, 8, 12)
    assert (run(images) - program.module()(images)).abs().max() < tolerance
    file = InOpenVino(path, threads=1)
    assert file.inputs == {'images': (1, 3, 8, 12)}
    assert file.outputs == ['logits']
    assert file.metadata[METADATA_KEY] == FACTS
    assert {file.name for file in tmp_path.iterdir()} == {'model.xml', 'model.bin'}


def test_other_xml_files_raise_one_sentence(tmp_path):
    path = tmp_path / 'model.xml'
    path.write_text('<note/>')
    with rejects('model.xml. cannot be run .*export it again'):
        InOpenVino(path)


def write_both(path: Path) -> None:
    """Write both files of a model, as OpenVINO would."""
    path.write_text('new')
    path.with_suffix('.bin').write_text('new')


def test_after_an_error_the_old_weights_stay(tmp_path):
    old, path = tmp_path / 'model.bin', tmp_path / '.model.1.xml'
    old.write_text('old')
    with suppress(ValueError), weights_of_openvino(path, tmp_path / 'model.xml', ()):
        write_both(path)
        raise ValueError('broken')
    assert old.read_text() == 'old'
    assert not path.with_suffix('.bin').exists()
    with weights_of_openvino(path, tmp_path / 'model.xml', ()):
        write_both(path)
    assert old.read_text() == 'new'
    assert not path.with_suffix('.bin').exists()


def test_overwriting_the_source_raises(tmp_path):
    source = tmp_path / 'pytorch_model.bin'
    source.write_text('weights')
    written = weights_of_openvino(tmp_path / '.1.xml', tmp_path / 'pytorch_model.xml', [source])
    with rejects('pytorch_model.bin'), written:
        pytest.fail('nothing may be written')
    assert source.read_text() == 'weights'
