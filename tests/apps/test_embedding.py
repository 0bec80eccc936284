"""Vectors of images: batches in order, and files."""

import cv2
import numpy as np
import pytest
import torch
from torch import nn

import vit_plugin
from vit_plugin.apps.embedding import embed, normalised, of_model, save_embeddings, vectors_of
from vit_plugin.errors import ConfigError


@pytest.fixture
def files(tmp_path) -> list[str]:
    generator = np.random.default_rng(0)
    for i in range(5):
        cv2.imwrite(str(tmp_path / f'{i}.png'), generator.integers(0, 256, (20 + i, 40, 3), dtype=np.uint8))
    return [str(tmp_path / f'{i}.png') for i in range(5)]


@pytest.mark.parametrize('batch_size', [1, 2, 5, 8])
def test_batches_come_in_order(files, tiny, batch_size):
    model = vit_plugin.create_model(**tiny, num_classes=0).eval()
    embedder = of_model(model)
    batches = list(embed(embedder, files, batch_size))
    assert [len(batch) for batch in batches] == [len(files[i:i + batch_size]) for i in range(0, 5, batch_size)]
    for path, vector in zip(files, np.concatenate(batches), strict=True):
        assert vector.shape == (32, )
        np.testing.assert_allclose(vector, embedder.vectors([embedder.prepare(path)])[0], atol=1e-5)


def test_pixels_are_normalised_rgb(tmp_path, tiny):
    cv2.imwrite(str(tmp_path / 'a.png'), np.full((40, 50, 3), (0, 128, 255), dtype=np.uint8))  # BGR
    pixels = of_model(vit_plugin.create_model(**tiny, num_classes=0)).prepare(str(tmp_path / 'a.png'))
    assert pixels.shape == (3, 32, 32)
    torch.testing.assert_close(pixels[:, 3, 5], torch.tensor([1., 128 / 127.5 - 1, -1.]))
    grey = of_model(vit_plugin.create_model(**tiny, num_classes=0, patch_embed=dict(in_channels=1)))
    assert grey.prepare(str(tmp_path / 'a.png')).shape == (1, 32, 32)


def test_an_unreadable_image_is_one_sentence(files, tmp_path, tiny):
    (tmp_path / '3.png').write_text('no image')
    with pytest.raises(ConfigError, match=r"3\.png' cannot be read"):
        list(embed(of_model(vit_plugin.create_model(**tiny, num_classes=0)), files, 2))


def test_the_file_has_names_and_rows(tmp_path):
    features = np.array([[3., 4.], [0., 0.], [1., 0.]])
    save_embeddings(tmp_path / 'out.npz', ['a', 'b c', 'd'], normalised(features))
    read = np.load(tmp_path / 'out.npz')
    assert read['names'].tolist() == ['a', 'b c', 'd']
    assert read['features'].dtype == np.float32
    np.testing.assert_allclose(read['features'], [[.6, .8], [0, 0], [1, 0]])


def test_maps_are_refused():
    model = nn.Module()
    model.extract_feat = lambda inputs: (inputs, )
    with pytest.raises(ConfigError, match=r'features of shape \(1, 3, 4, 4\)'):
        vectors_of(model, torch.zeros(1, 3, 4, 4))
