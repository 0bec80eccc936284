"""Features of images come in batches in the order of the images, and are written to a file."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np
import pytest
import torch
from authors import recorded
from mmengine.dataset import pseudo_collate
from rejection import rejects
from torch import nn

import vit_plugin
from vit_plugin.inference.embedding import embed, save_embeddings
from vit_plugin.inference.inputs import Frame, Reading, find_inputs
from vit_plugin.inference.trained_model import TrainedModel, compute_vectors
from vit_plugin.inference.weights_with_arch import from_arch


@pytest.fixture
def files(tmp_path) -> list[str]:
    rng = np.random.default_rng(0)
    for i in range(5):
        cv2.imwrite(
            str(tmp_path / f'{i}.png'), rng.integers(0, 256, (20 + i, 40, 3), dtype=np.uint8)
        )
    return [str(tmp_path / f'{i}.png') for i in range(5)]


@pytest.fixture
def make_model(tmp_path, tiny) -> Callable[..., TrainedModel]:
    """A function that makes a model of features, from weights without a config."""

    def make(**options) -> TrainedModel:
        options = {**tiny, **options}
        torch.save(
            vit_plugin.create_model(**options, num_classes=0).state_dict(), tmp_path / 'weights.pth'
        )
        return from_arch(
            options.pop('arch'), str(tmp_path / 'weights.pth'), options, classify=False
        )

    return make


@pytest.mark.parametrize('batch_size', [1, 2, 5, 8])
def test_batches_come_in_order(files, make_model, batch_size):
    trained = make_model()
    batches = list(embed(trained, Reading(find_inputs(files)), batch_size))
    assert [names for names, _ in batches] == [
        files[i : i + batch_size] for i in range(0, 5, batch_size)
    ]
    for path, vector in zip(files, np.concatenate([batch for _, batch in batches]), strict=True):
        assert vector.shape == (32,)
        np.testing.assert_allclose(vector, trained.features([trained.sample(path)])[0], atol=1e-5)


def test_pixels_are_normalized_rgb(tmp_path, make_model):
    cv2.imwrite(str(tmp_path / 'a.png'), np.full((40, 50, 3), (0, 128, 255), dtype=np.uint8))  # BGR
    trained = make_model()
    sample = trained.sample(str(tmp_path / 'a.png'))
    pixels = trained.model.data_preprocessor(pseudo_collate([sample]))['inputs'][0]
    assert pixels.shape == (3, 32, 32)
    torch.testing.assert_close(pixels[:, 3, 5], torch.tensor([1.0, 128 / 127.5 - 1, -1.0]))
    assert make_model(patch_embed=dict(in_channels=1)).sample(str(tmp_path / 'a.png'))[
        'inputs'
    ].shape == (1, 32, 32)


def test_unreadable_images_are_left_out_and_counted(files, tmp_path, make_model):
    for name in ('2.png', '3.png'):
        (tmp_path / name).write_text('no image')
    reading = Reading(find_inputs(files))
    assert [names for names, _ in embed(make_model(), reading, 2)] == [files[:2], files[4:]]
    with rejects('^2 of 5 inputs could not be read'):
        reading.finish()


def test_files_have_names_and_features(tmp_path):
    save_embeddings(
        tmp_path / 'out.npz',
        ['a', 'b c'],
        torch.tensor([[0.6, 0.8], [0.0, 0.0]], dtype=torch.float64),
    )
    read = recorded(tmp_path / 'out.npz')
    assert read['names'].tolist() == ['a', 'b c']
    assert read['features'].dtype == np.float32
    np.testing.assert_allclose(read['features'], [[0.6, 0.8], [0, 0]])


def test_a_reader_of_the_config_takes_the_files(files):
    class FilesModel:
        def sample_argument(self, frame: Frame) -> str:
            return frame.source.name

        def sample(self, image: str) -> dict[str, str]:
            return dict(inputs=image)

        def features(self, samples: Sequence[dict[str, str]]) -> list[str]:
            return [sample['inputs'] for sample in samples]

    assert list(embed(FilesModel(), Reading(find_inputs(files)), 5)) == [(files, files)]


def test_features_that_are_not_vectors_raise():
    model = nn.Module()
    model.extract_feat = lambda inputs: (inputs,)
    with rejects(r'features have the shape \(1, 3, 4, 4\)'):
        compute_vectors(model, torch.zeros(1, 3, 4, 4))
