"""The table of a plan: each layout of a run on GPUs, with memory, largest batch and time."""

import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product, starmap
from multiprocessing import get_context

import torch
from mmengine.config import Config
from torch import nn
from tqdm import tqdm

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.recompute import Recompute

from .cost import GIB, SECONDS_PER_DAY, Cluster
from .forecast import Forecast, equal_blocks
from .planned_model import find_recompute_modes, num_blocks
from .traced_step import Layout

RECOMPUTING: dict[Recompute, str] = {
    False: '',
    'selective': ' with selective recomputing',
    True: ' with recomputing',
}
_planners: list['Planner'] = []  # the one planner of a forked process, see _start_worker


@dataclass(frozen=True)
class PlannedLayout:
    """A row of the plan."""

    name: str  # DDP, FSDP2 or HSDP, and the number of ranks that share one copy of the model
    recompute: Recompute
    memory: Mapping[str, float]  # bytes by kind at the peak of a step
    peak: float  # their sum
    least_peak: float  # the peak with one image
    largest_batch: int  # largest batch that fits, or 0
    traffic: Mapping[str, float]  # bytes that a GPU receives in a step, within and between machines
    flops: float  # for an image, forward and backward, recomputing included
    arithmetic_s: float  # seconds of arithmetic in a step
    messages_s: float  # seconds of communication in a step
    # The larger of both, since they overlap. Loading, validation and checkpoints are not counted.
    step_s: float
    days: float | None  # days of the run; None without a schedule

    def __str__(self) -> str:
        return self.name + RECOMPUTING[self.recompute]


def plan_layouts(
    cfg: Config,
    cluster: Cluster,
    batch: int,
    images: float | None,
    model: nn.Module,
    processes: int = 1,
) -> tuple[list[PlannedLayout], list[str]]:
    """Plan DDP, FSDP2 and HSDP for a classifier, each with its modes of activation checkpointing.

    A bar on stderr shows the progress.

    Args:
        cfg, cluster: the config and the cluster. The ranks must be pretended, see
            :func:`~.traced_step.pretended_ranks`.
        batch: images of a forward on a GPU.
        images: number of images that the run trains on; None if it is not known.
        model: the classifier of the config, see :func:`~.planned_model.build_classifier`.
        processes: number of planning processes, on Linux. With more than one, this process must not
            have run a backward pass, since torch cannot be forked after one.

    Returns:
        The rows, and what could not be planned as asked.

    Raises:
        ConfigError: if the config cannot be planned.
    """
    planner = Planner(cfg, cluster, batch, images, num_blocks(model))
    strategies = [name for name, sizes in planner.groups.items() if sizes]
    layouts = list(product(strategies, find_recompute_modes(model)))
    with ExitStack() as stack:
        if processes > 1 and sys.platform == 'linux':
            pool = ProcessPoolExecutor(
                min(processes, len(layouts)),
                mp_context=get_context('fork'),
                initializer=_start_worker,
                initargs=(planner,),
            )
            stack.callback(pool.shutdown, cancel_futures=True)  # after an error
            planned = pool.map(_plan_in_worker, layouts)
        else:
            planned = starmap(planner.row, layouts)
        rows_and_notes = list(tqdm(planned, desc='Planning', total=len(layouts), unit='layout'))
    notes = dict.fromkeys(note for _, note in rows_and_notes if note)
    return [row for row, _ in rows_and_notes if row], list(notes)


class Planner:
    """Plans one row after another. It keeps the forecast of each strategy.

    Args:
        cfg, cluster, batch, images: see :func:`plan_layouts`.
        num_layers: number of blocks of the model.

    Attributes:
        groups: for each strategy, the numbers of ranks that may share one copy of the model, in the
            order in which they are tried. FSDP2 shares it over all ranks if the model permits.
    """

    def __init__(
        self, cfg: Config, cluster: Cluster, batch: int, images: float | None, num_layers: int
    ) -> None:
        gpus, node = cluster.gpus, cluster.gpus_per_node
        self.groups = {
            'DDP': [1],
            'FSDP2': [group for group in range(gpus, 1, -1) if gpus % group == 0],
            'HSDP': [node] if gpus > node > 1 else [],
        }
        self._cfg, self._cluster, self._num_layers = cfg, cluster, num_layers
        self._batch, self._images = batch, images
        self._notes: dict[str, str] = {}
        self._forecasts: dict[str, Forecast | None] = {}

    def row(self, strategy: str, recompute: Recompute) -> tuple[PlannedLayout | None, str | None]:
        """The row of a strategy, or None if it is impossible, and a note on what is not planned."""
        if strategy not in self._forecasts:
            cluster = self._cluster
            candidates = (
                Layout(cluster.gpus, cluster.gpus_per_node, group)
                for group in self.groups[strategy]
            )
            self._forecasts[strategy] = _first_possible(
                self._cfg, candidates, self._num_layers, self._notes, strategy
            )
        note = self._notes.get(strategy)
        if not (forecast := self._forecasts[strategy]):
            return None, note
        forecast.recompute(recompute)
        row = _make_row(strategy, forecast, self._cluster, recompute, self._batch, self._images)
        return row, note


def _start_worker(planner: Planner) -> None:
    """Prepare a forked process to plan."""
    _planners[:] = [planner]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process reports it, and ends this one
    torch.set_num_threads(1)  # libgomp's threads do not survive a fork


def _plan_in_worker(layout: tuple[str, Recompute]) -> tuple[PlannedLayout | None, str | None]:
    return _planners[0].row(*layout)


def _first_possible(
    cfg: Config, layouts: Iterable[Layout], num_layers: int, notes: dict[str, str], strategy: str
) -> Forecast | None:
    """The forecast of the first of these layouts in which the model can be sharded.

    The first error is added to ``notes``. None if no layout is possible.
    """
    for layout in layouts:
        try:
            return Forecast(cfg, layout, equal_blocks(cfg, num_layers))
        except ConfigError as error:
            # The setting at the beginning of a message tells what does not permit the layout.
            sharding_fails = str(error).startswith('sharding:')
            optimizer_fails = str(error).startswith('optim_wrapper.optimizer:')
            if layout.group == 1 or not (sharding_fails or optimizer_fails):
                raise
            notes.setdefault(strategy, str(error))
            if optimizer_fails:  # it would fail with any group
                return None
    return None


def _make_row(
    strategy: str,
    forecast: Forecast,
    cluster: Cluster,
    recompute: Recompute,
    batch: int,
    images: float | None,
) -> PlannedLayout:
    """The row of a forecast at a batch."""
    # The key ('work', ) has the operations and traffic, see Cost.
    memory, work, step = forecast.memory(batch), forecast.cost(batch)['work',], forecast.steps[0]
    forwards, group = step.forwards, step.layout.group
    arithmetic, messages = cluster.arithmetic_s(work['flops']), cluster.messages_s(work)
    seconds = max(arithmetic, messages)
    days = None
    if images is not None:
        steps = images / (batch * forwards * cluster.gpus)
        days = steps * seconds / SECONDS_PER_DAY
    return PlannedLayout(
        name=f'{strategy} of {group}' if group > 1 else strategy,
        recompute=recompute,
        memory=dict(memory),
        peak=memory.total(),
        least_peak=forecast.memory(1).total(),
        largest_batch=forecast.largest_batch(cluster.memory, near=batch),
        traffic={link: work[link] for link in ('within', 'between')},
        flops=work['flops'] / batch / forwards,
        arithmetic_s=arithmetic,
        messages_s=messages,
        step_s=seconds,
        days=days,
    )


def choose_layout(rows: Sequence[PlannedLayout], memory: int) -> PlannedLayout:
    """The fastest layout among those that fit into ``memory`` bytes with the planned batch.

    If there are none, the fastest among those that fit with a smaller batch.

    Raises:
        ConfigError: if none fits even with a single image. The message names the missing memory.
    """
    fitting = [row for row in rows if row.largest_batch]
    if not fitting:
        least = min(rows, key=lambda row: row.least_peak)
        raise ConfigError(
            f'The model does not fit even with one image on a GPU: {least} takes the least, '
            f'{least.least_peak / GIB:.2f} GiB, which is {(least.least_peak - memory) / GIB:.2f} '
            f'GiB more than the usable {memory / GIB:.2f}; take GPUs with more memory, more GPUs, '
            'or a smaller model.'
        )
    fitting_batch = [row for row in fitting if row.peak <= memory]
    return min(fitting_batch or fitting, key=lambda row: row.step_s)
