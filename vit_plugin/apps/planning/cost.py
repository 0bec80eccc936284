"""Arithmetic, time and money of a planned run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mmengine.config import Config

from vit_plugin.errors import ConfigError

# Dense TFLOP/s of one NVIDIA H100 SXM (its data sheet), by the type that products are computed in.
PEAK_TFLOPS = {'bfloat16': 989., 'float32': 67.}
GIGABYTES_PER_S = dict(within=450., between=50.)  # NVLink 4 and one 400 Gb/s card per GPU, in one direction

# bfloat16 TFLOP/s of one TPUv3 core: half a chip's 123 (cloud.google.com/tpu/docs/v3).
TPU_V3_CORE_TFLOPS = 61.5
# TPUv3-core-days to pre-train (arXiv:2010.11929, Table 2), by arch and data.
PAPER_CORE_DAYS = {'H/14': {'JFT-300M': 2500}, 'L/16': {'JFT-300M': 680, 'ImageNet-21k': 230}}

# Images in the training set of well-known data, by the type of the data set.
IMAGES = {'ImageNet': 1_281_167, 'ImageNet21k': 14_197_122, 'CIFAR10': 50_000, 'CIFAR100': 50_000}
DAY = 24 * 3600


@dataclass(frozen=True)
class Estimate:
    """What a run takes.

    Attributes:
        images: number of images that it trains on, repetitions included.
        exaflops: operations of the forward and backward without recomputing, in 10^18.
        step_s: seconds of a step: arithmetic or messages, whichever takes longer.
        arithmetic_s, messages_s: seconds of a step for each of them alone.
        days: days of the run.
        gpu_days: days of the run times GPUs.
        price: of the GPUs' hours; None without a price.
        core_days: days of one TPUv3 core for the same arithmetic, at the same utilisation.
    """
    images: float
    exaflops: float
    step_s: float
    arithmetic_s: float
    messages_s: float
    days: float
    gpu_days: float
    price: float | None
    core_days: float


def estimate(images: float, batch: int, gpus: int, flops: float, traffic: Mapping[str, float],
             peak_tflops: float, utilisation: float, gigabytes_per_s: Mapping[str, float] = GIGABYTES_PER_S,
             repeated_flops: float = 0., price: float | None = None) -> Estimate:
    """Estimate a run.

    Arithmetic and links are taken to work at the same time; data, validation and checkpoints cost none.

    Args:
        images: number of images that the run trains on.
        batch: images of an update on each GPU.
        gpus: number of GPUs.
        flops: operations for one image, forward and backward.
        traffic: bytes that a GPU receives in a step, ``within`` and ``between`` machines.
        peak_tflops: what a GPU could compute at best.
        utilisation: which part of it the arithmetic reaches.
        gigabytes_per_s: speed of the links of a GPU, in one direction.
        repeated_flops: operations for one image that recomputing adds.
        price: of a GPU's hour.
    """
    rate = peak_tflops * 1e12 * utilisation
    arithmetic = (flops + repeated_flops) * batch / rate
    messages = max(size / (gigabytes_per_s[link] * 1e9) for link, size in traffic.items())
    step = max(arithmetic, messages)
    days = images / (batch * gpus) * step / DAY
    return Estimate(images, images * flops / 1e18, step, arithmetic, messages, days, days * gpus,
                    None if price is None else days * gpus * 24 * price,
                    images * flops / (TPU_V3_CORE_TFLOPS * 1e12 * utilisation * DAY))


def images_of_run(cfg: Config, global_batch: int, images: int | None = None) -> float | None:
    """Number of images that a config trains on, repetitions included; None without a schedule.

    Args:
        cfg: the config.
        global_batch: images of an update on all GPUs, for schedules in iterations.
        images: number of images in the training set; None for that of well-known data.

    Raises:
        ConfigError: if the schedule counts epochs of a data set whose size is not known.
    """
    loop = cfg.get('train_cfg') or {}
    if loop.get('max_iters'):
        return loop['max_iters'] * global_batch
    if not loop.get('max_epochs'):
        return None
    kind = str((cfg.get('train_dataloader') or {}).get('dataset', {}).get('type')).rpartition('.')[2]
    number = images or IMAGES.get(kind)
    if number is None:
        raise ConfigError(f'The number of images in a {kind} is not known; give --images NUMBER.')
    return loop['max_epochs'] * number


def paper_core_days(arch: Any) -> dict[str, int]:
    """TPUv3-core-days of the paper for this arch, by data. Empty for other archs."""
    return PAPER_CORE_DAYS.get(arch[:1].upper() + arch[1:], {}) if isinstance(arch, str) else {}
