"""Transforms of batches draw the same numbers as MMPretrain's, and give nearly the same pixels."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmpretrain.datasets import transforms as mmpretrain
from rejection import rejects

from vit_plugin.data.batch_operations import OPERATIONS
from vit_plugin.data.batch_transforms import BATCH_VERSIONS, check_batched

HPARAMS = dict(pad_val=[104, 116, 124], interpolation='bilinear')
POLICY = dict(
    policies='timm_increasing',
    num_policies=2,
    magnitude_level=9,
    magnitude_std=0.5,
    hparams=HPARAMS,
)


def photo(seed: int = 0, height: int = 40, width: int = 56) -> np.ndarray:
    """Smooth colors with an edge (H, W, 3), so that a shift by a pixel changes values."""
    y, x = np.mgrid[:height, :width] / height
    waves = [np.sin(3 * (x * i + y * (3 - i)) + seed + i) for i in range(3)]
    image = np.stack(waves, axis=-1) * 90 + 120
    image[10:25, 20:40] *= 0.6
    return image.astype(np.uint8)


def as_batch(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image).permute(2, 0, 1)[None]


def as_image(batch: torch.Tensor) -> np.ndarray:
    return batch[0].permute(1, 2, 0).numpy()


def assert_same(actual: np.ndarray, expected: np.ndarray, message: object = '') -> None:
    difference = np.abs(actual.astype(int) - expected)
    # One of both may truncate where the other rounds.
    assert difference.mean() < 1.5, message
    assert np.median(difference) <= 1, message


def test_every_operation_equals_mmpretrains():
    names = set()
    for index, operation in enumerate(mmpretrain.RandAugment(**POLICY).transforms):
        names.add(type(operation).__name__)
        for seed in range(6):

            def single_operation(index: int = index) -> mmpretrain.RandAugment:
                augment = mmpretrain.RandAugment(**dict(POLICY, num_policies=1))
                augment.transforms = [augment.transforms[index]]
                augment.policies = augment.policies[:1]
                return augment

            np.random.seed(seed)
            theirs = single_operation()(dict(img=photo(seed)))['img']
            np.random.seed(seed)
            batched = BATCH_VERSIONS['RandAugment'](single_operation(), as_batch(photo(seed)))
            assert_same(as_image(batched), theirs, operation)
    assert names == OPERATIONS.keys()


def test_images_of_a_batch_get_different_operations():
    augment = mmpretrain.RandAugment(**POLICY)
    np.random.seed(0)
    images = as_batch(photo()).repeat(32, 1, 1, 1)
    changed = BATCH_VERSIONS['RandAugment'](augment, images)
    untouched = (changed == images).flatten(1).all(1).float().mean()
    # Each of two operations is skipped with a probability of a half: both for a quarter of the
    # images. Some operations do nothing.
    assert 0.1 < untouched < 0.5
    assert len({image.numpy().tobytes() for image in changed}) > 12
    assert (images == images[0]).all()  # not changed in place


@pytest.mark.parametrize('mode', ['const', 'rand'])
def test_erasing_equals_mmpretrains(mode):
    theirs = mmpretrain.RandomErasing(
        1.0, mode=mode, fill_color=(10.0, 20.0, 30.0), fill_std=(5.0, 5.0, 5.0)
    )
    white = np.full((64, 64, 3), 255, np.uint8)
    for seed in range(5):
        results = []
        for erase in (
            lambda: theirs(dict(img=white.copy()))['img'],
            lambda: as_image(BATCH_VERSIONS['RandomErasing'](theirs, as_batch(white))),
        ):
            np.random.seed(seed)
            results.append(erase())
        expected, erased = results
        assert ((erased != 255) == (expected != 255)).all()
        assert np.abs(erased.mean((0, 1)) - expected.mean((0, 1))).max() < 0.5
        assert abs(erased.std() - expected.std()) < 0.5


@pytest.mark.parametrize(
    'kwargs',
    [
        dict(mode='const', fill_color=(0, 255, 0)),
        dict(mode='rand'),
        dict(mode='rand', fill_color=7, fill_std=(1, 2, 3)),
    ],
)
def test_erasing_gray_images(kwargs):
    gray = np.full((64, 64, 1), 255, np.uint8)
    batch = BATCH_VERSIONS['RandomErasing'](mmpretrain.RandomErasing(1.0, **kwargs), as_batch(gray))
    erased = as_image(batch)
    assert erased.shape == gray.shape
    assert (erased != 255).any()
    if kwargs['mode'] == 'const':
        assert set(np.unique(batch)) == {149, 255}  # green as gray


def test_fill_colors_of_other_numbers_of_channels_raise():
    with rejects('fill_color=.* has 3 values for images of 4 channels'):
        BATCH_VERSIONS['RandomErasing'](
            mmpretrain.RandomErasing(1.0, fill_color=(1, 2, 3)), torch.zeros(1, 4, 8, 8)
        )


def test_erasing_and_flipping_have_their_probabilities():
    torch.manual_seed(0)
    np.random.seed(0)
    images = torch.arange(64, dtype=torch.uint8).view(1, 1, 8, 8).repeat(600, 3, 1, 1)
    erased = BATCH_VERSIONS['RandomErasing'](
        mmpretrain.RandomErasing(0.25, mode='const', fill_color=200), images
    )
    assert (erased == 200).flatten(1).any(1).float().mean().item() == pytest.approx(0.25, abs=0.06)
    transform = mmpretrain.RandomFlip(prob=[0.3, 0.5], direction=['horizontal', 'vertical'])
    flipped = BATCH_VERSIONS['RandomFlip'](transform, images)
    for dims, share in (((3,), 0.3), ((2,), 0.5), ((), 0.2)):
        same = (flipped == images.flip(dims)).flatten(1).all(1)
        assert same.float().mean().item() == pytest.approx(share, abs=0.07)


@pytest.mark.parametrize('pad_val', [0, (7, 7, 7), (1, 2, 3)])
@pytest.mark.parametrize('padding', [4, (1, 2), (1, 2, 3, 4)])
def test_cropping_equals_mmpretrains(padding, pad_val):
    transform = mmpretrain.RandomCrop(crop_size=24, padding=padding, pad_val=pad_val)
    np.random.seed(0)
    theirs = transform(dict(img=photo(height=24, width=24)))['img']
    np.random.seed(0)
    assert (
        as_image(BATCH_VERSIONS['RandomCrop'](transform, as_batch(photo(height=24, width=24))))
        == theirs
    ).all()


def test_cropping_after_reflection():
    """MMPretrain's own transform ignores ``padding_mode``."""
    transform = mmpretrain.RandomCrop(crop_size=24, padding=4, padding_mode='reflect')
    image = photo(height=24, width=24)
    np.random.seed(0)
    top, left, _, _ = transform.rand_crop_params(np.empty((32, 32)))
    np.random.seed(0)
    padded = np.pad(image, ((4, 4), (4, 4), (0, 0)), mode='reflect')
    assert (
        as_image(BATCH_VERSIONS['RandomCrop'](transform, as_batch(image)))
        == padded[top : top + 24, left : left + 24]
    ).all()


def test_transforms_without_a_batch_version_raise():
    with rejects('GaussianBlur cannot be applied to batches'):
        check_batched(mmpretrain.GaussianBlur(radius=1))
    with rejects('takes no pad_if_needed'):
        check_batched(mmpretrain.RandomCrop(4, pad_if_needed=True))
    with rejects('operations Cutout of RandAugment'):
        check_batched(mmpretrain.RandAugment([dict(type='Cutout', shape=2)], 1, 9))
    for interpolation in ('nearest', 'area'):  # OpenCV warps with `area` as with `bilinear`
        check_batched(mmpretrain.Rotate(angle=3.0, interpolation=interpolation))
    with rejects("Rotate of batches has no interpolation='lanczos'"):
        check_batched(mmpretrain.Rotate(angle=3.0, interpolation='lanczos'))
    policy = [dict(type='Shear', magnitude=0.1, interpolation='lanczos')]
    with rejects("Shear of batches has no interpolation='lanczos'"):
        check_batched(mmpretrain.RandAugment(policy, 1, 9))


@pytest.mark.parametrize('name', ['imagenet_bs64_384px', 'cifar10_bs256'])
def test_device_variants_have_the_steps_of_the_plain_recipes(name):
    """The steps of the workers and of the device together are those of the workers alone."""
    plain, device = (
        Config.fromfile(f'configs/_base_/datasets/{stem}.py') for stem in (name, f'{name}_device')
    )
    steps = []
    workers = device.train_dataloader.dataset.pipeline[:-1]
    for step in (*workers, *device.data_preprocessor.augments):
        step = step.to_dict()
        if step['type'] == 'vit_plugin.LoadRandomResizedCrop':  # does two steps of the plain recipe
            steps.append(dict(type='vit_plugin.LoadImage'))
            step['type'] = 'RandomResizedCrop'
        steps.append(step)
    assert steps == [step.to_dict() for step in plain.train_dataloader.dataset.pipeline[:-1]]


@pytest.mark.nightly
def test_the_module_may_be_imported_on_the_meta_device():
    """A recipe is built there first, so that its memory is known."""
    code = (
        'import torch\n'
        "with torch.device('meta'):\n"
        '    from vit_plugin.data import batch_operations\n'
        "assert {batch_operations.RAMP.device.type, batch_operations.SMOOTH.device.type} == {'cpu'}"
    )
    subprocess.run([sys.executable, '-c', code], check=True)
