"""The table of a plan: each layout of a run on GPUs, with memory, largest batch and time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from mmengine.config import Config
from tqdm import tqdm

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.recompute import Recompute

from .cost import DAY, Cluster
from .forecast import Forecast, equal_blocks
from .traced_step import Layout

GIB = 1 << 30
RECOMPUTING: dict[Recompute, str] = {
    False: '',
    'selective': ' with selective recomputing',
    True: ' with recomputing',
}


@dataclass(frozen=True)
class PlannedLayout:
    """A row of the plan."""

    name: str  # DDP, FSDP2 or HSDP, and the number of ranks that share one copy of the model
    recompute: Recompute
    memory: Mapping[str, float]  # bytes by kind at the peak of a step
    peak: float  # their sum
    least_peak: float  # the same with one image
    largest_batch: int  # that fits, or 0
    traffic: Mapping[str, float]  # bytes that a GPU receives in a step, within and between machines
    flops: float  # for an image, forward and backward, recomputing included
    arithmetic_s: float
    messages_s: float
    # Arithmetic and messages overlap; loading, validation and checkpoints take no time.
    step_s: float
    days: float | None  # of the run; None without a schedule

    def __str__(self) -> str:
        return self.name + RECOMPUTING[self.recompute]


def lay_out(
    cfg: Config, cluster: Cluster, batch: int, images: float | None, num_layers: int
) -> tuple[list[PlannedLayout], list[str]]:
    """Plan DDP, FSDP2 and HSDP for a classifier, each with the three settings of recomputing.

    A bar on stderr counts them.

    Args:
        cfg, cluster: the config, and what it is planned for. The ranks must be pretended.
        batch: images of a forward on a GPU.
        images: number of images that the run trains on; None if it is not known.
        num_layers: number of blocks of the model.

    Returns:
        The rows, and what could not be planned as asked.

    Raises:
        ConfigError: if the config cannot be planned.
    """
    gpus, node = cluster.gpus, cluster.gpus_per_node
    # In order of trying.
    groups = {
        'DDP': [1],
        'FSDP2': [group for group in range(gpus, 1, -1) if gpus % group == 0],
        'HSDP': [node] if gpus > node > 1 else [],
    }
    rows: list[PlannedLayout] = []
    notes: dict[str, str] = {}
    forecasts: dict[str, Forecast | None] = {}
    layouts = product((strategy for strategy, sizes in groups.items() if sizes), RECOMPUTING)
    for strategy, recompute in tqdm([*layouts], 'Planning', unit='layout'):
        if strategy not in forecasts:
            tried = (Layout(gpus, node, group) for group in groups[strategy])
            forecasts[strategy] = _first(cfg, tried, num_layers, notes, strategy)
        if forecast := forecasts[strategy]:
            forecast.recompute(recompute)
            rows.append(_row(strategy, forecast, cluster, recompute, batch, images))
    return rows, list(dict.fromkeys(notes.values()))


def _first(
    cfg: Config, layouts: Iterable[Layout], num_layers: int, notes: dict[str, str], strategy: str
) -> Forecast | None:
    """The forecast of the first layout, in order of trying, that the model can be sharded in."""
    for layout in layouts:
        try:
            return Forecast(cfg, layout, equal_blocks(cfg, num_layers))
        except ConfigError as error:
            of_group, of_optimizer = (
                str(error).startswith(field) for field in ('sharding:', 'optim_wrapper.optimizer:')
            )
            if layout.group == 1 or not (of_group or of_optimizer):
                raise
            notes.setdefault(strategy, str(error))
            if of_optimizer:  # in whatever group
                return None
    return None


def _row(
    strategy: str,
    forecast: Forecast,
    cluster: Cluster,
    recompute: Recompute,
    batch: int,
    images: float | None,
) -> PlannedLayout:
    memory, work, step = forecast.memory(batch), forecast.at(batch)['work',], forecast.steps[0]
    forwards, group = step.forwards, step.layout.group
    arithmetic, messages = cluster.arithmetic_s(work['flops']), cluster.messages_s(work)
    seconds = max(arithmetic, messages)
    return PlannedLayout(
        f'{strategy} of {group}' if group > 1 else strategy,
        recompute,
        dict(memory),
        memory.total(),
        forecast.memory(1).total(),
        forecast.largest_batch(cluster.memory, batch),
        {link: work[link] for link in ('within', 'between')},
        work['flops'] / batch / forwards,
        arithmetic,
        messages,
        seconds,
        None if images is None else images / (batch * forwards * cluster.gpus) * seconds / DAY,
    )


def best(rows: Sequence[PlannedLayout], memory: int) -> PlannedLayout:
    """The layout that takes the shortest time of those that fit in so many bytes.

    Raises:
        ConfigError: if none fits with a single image. It says by how much.
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
    now = [row for row in fitting if row.peak <= memory]
    return min(now or fitting, key=lambda row: row.step_s)
