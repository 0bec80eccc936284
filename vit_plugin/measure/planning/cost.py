"""Time of a step on a cluster, and the number of images of a run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anyfolder.text import read_lines
from vit_plugin.errors import ConfigError
from vit_plugin.gpus import GPU_TFLOPS

# Dense TFLOP/s of one NVIDIA H100 SXM (its data sheet), by the dtype of matrix products.
PEAK_TFLOPS = {'bfloat16': GPU_TFLOPS['H100'], 'float32': 67.0}
# NVLink 4 and one 400 Gb/s card per GPU, in one direction.
GIGABYTES_PER_S = dict(within=450.0, between=50.0)

# bfloat16 TFLOP/s of one TPUv3 core: half a chip's 123 (cloud.google.com/tpu/docs/v3).
TPU_V3_CORE_TFLOPS = 61.5
# TPUv3-core-days to pre-train (arXiv:2010.11929, Table 2), by arch and data.
PAPER_CORE_DAYS = {'H/14': {'JFT-300M': 2500}, 'L/16': {'JFT-300M': 680, 'ImageNet-21k': 230}}

# Images in the training set of well-known data, by the type of the data set or by its folder.
DATASET_IMAGES = {
    'ImageNet': 1_281_167,
    'ImageNet21k': 14_197_122,
    **dict.fromkeys(('CIFAR10', 'CIFAR100', 'cifar10-jpeg', 'cifar100-jpeg'), 50_000),
}
DIGITS_IMAGES = 1797  # size of scikit-learn's data set
SECONDS_PER_DAY = 24 * 3600
GIB = 1 << 30  # bytes


@dataclass(frozen=True)
class Cluster:
    """The cluster that a run is planned for."""

    gpus: int
    gpus_per_node: int
    memory: int  # bytes of a GPU that a run may use
    peak_tflops: float  # peak of one GPU
    utilization: float  # share of the peak that arithmetic reaches
    # Speed of a GPU's links ``within`` and ``between`` machines, in one direction.
    gigabytes_per_s: Mapping[str, float]

    def __post_init__(self) -> None:
        if self.gpus > self.gpus_per_node and self.gpus % self.gpus_per_node:
            raise ConfigError(
                f'--gpus {self.gpus} does not fill machines of --gpus-per-node '
                f'{self.gpus_per_node}; give a multiple of it.'
            )

    def arithmetic_s(self, flops: float) -> float:
        """Seconds that a GPU takes for a number of operations."""
        return flops / (self.peak_tflops * 1e12 * self.utilization)

    def messages_s(self, traffic: Mapping[str, float]) -> float:
        """Seconds of communication: a GPU receives these bytes over both kinds of links at once."""
        return max(traffic[link] / (speed * 1e9) for link, speed in self.gigabytes_per_s.items())

    def core_days(self, flops: float) -> float:
        """Days of one TPUv3 core for a number of operations, at the same utilization."""
        return flops / (TPU_V3_CORE_TFLOPS * 1e12 * self.utilization * SECONDS_PER_DAY)


def count_run_images(cfg: Mapping, global_batch: int, images: int | None = None) -> float | None:
    """Number of images of a run, counted again in each epoch. None if the config has no schedule.

    Args:
        cfg: the config.
        global_batch: images of an iteration on all GPUs, for schedules in iterations. With gradient
            accumulation, an update has several.
        images: number of images in the training set; None to find it out by :func:`images_in`.

    Raises:
        ConfigError: if the schedule counts epochs and the size of the data set is unknown, or if
            ``images`` is given for a schedule in iterations.
    """
    loop = cfg.get('train_cfg') or {}
    if images and (loop.get('max_iters') or not loop.get('max_epochs')):
        raise ConfigError(
            '--num-images is for a schedule in epochs, and this config has no '
            'train_cfg.max_epochs; leave it out.'
        )
    if loop.get('max_iters'):
        return loop['max_iters'] * global_batch
    if not loop.get('max_epochs'):
        return None
    dataset = (cfg.get('train_dataloader') or {}).get('dataset') or {}
    number = images or images_in(dataset)
    if number is None:
        raise ConfigError(
            f'The number of images in a {_type_name(dataset)} is unknown; give --num-images NUMBER.'
        )
    return loop['max_epochs'] * number


def images_in(dataset: Mapping) -> int | None:
    """The number of images of a training set, or None if it is unknown.

    It is known for a data set in ``DATASET_IMAGES``, for a list of images in a text file, and for a
    ``stratified_subset`` of these.
    """
    if 'fraction' in dataset:  # a stratified_subset, or with `rest` the images that it leaves out
        whole, fraction = images_in(dataset['dataset']), dataset['fraction']
        if whole is None:
            return None
        return round(whole * (1 - fraction if dataset.get('rest') else fraction))
    ann_file = dataset.get('ann_file')  # some data sets take a list of files
    list_file = Path(dataset.get('data_root') or '', ann_file if isinstance(ann_file, str) else '')
    if list_file.suffix == '.txt' and list_file.is_file():
        return len(read_lines(list_file))
    type_name = _type_name(dataset)
    if type_name == 'Digits':
        return DIGITS_IMAGES - math.ceil(DIGITS_IMAGES * dataset.get('val_fraction', 0.2))
    folder = Path(dataset.get('data_root') or '').name
    return DATASET_IMAGES.get(type_name) or DATASET_IMAGES.get(folder)


def _type_name(dataset: Mapping) -> str:
    """The name of a data set's class."""
    return str(dataset.get('type')).rpartition('.')[2]
