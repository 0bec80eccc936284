"""The ways to lay a run out on GPUs, each with its memory, its largest batch and what the run takes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .cost import Estimate, estimate
from .forecast import Forecast
from .step import Setting

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Machine:
    """What the run is planned for.

    Attributes:
        gpus: number of GPUs.
        gpus_per_node: number of GPUs in a machine.
        memory: bytes of a GPU.
        reserved: part of it that is kept for CUDA's context, NCCL and what torch's allocator cannot use.
        peak_tflops: what a GPU computes at best.
        utilisation: which part of that arithmetic reaches.
        gigabytes_per_s: speed of a GPU's links ``within`` and ``between`` machines, in one direction.
        price: of a GPU's hour.
    """
    gpus: int
    gpus_per_node: int
    memory: int
    reserved: float
    peak_tflops: float
    utilisation: float
    gigabytes_per_s: Mapping[str, float]
    price: float | None = None

    def __post_init__(self) -> None:
        if self.gpus > self.gpus_per_node and self.gpus % self.gpus_per_node:
            raise ConfigError(f'--gpus {self.gpus} are not whole machines of --gpus-per-node {self.gpus_per_node}; '
                              'give a multiple of it.')

    @property
    def usable(self) -> int:
        """Bytes of a GPU that a run may take."""
        return int(self.memory * (1 - self.reserved))


@dataclass(frozen=True)
class Layout:
    """A row of the plan.

    Attributes:
        strategy: DDP, FSDP2 or HSDP.
        num_parameters: of the whole model.
        group: number of ranks that share one copy of the model.
        recompute: whether activations are recomputed.
        batch: images of a forward on a GPU.
        memory: bytes by kind at the peak of a step.
        peak: their sum.
        peak_of_one: the same with one image, if not even that fits.
        largest_batch: the largest batch that fits; 0 if none does.
        traffic: bytes that a GPU receives in a step, ``within`` and ``between`` machines.
        flops: operations for an image, forward and backward.
        repeated_flops: those that recomputing adds.
        run: what the whole run takes; None without a schedule.
        note: what differs from what was asked for.
    """
    strategy: str
    num_parameters: int
    group: int
    recompute: bool
    batch: int
    memory: Mapping[str, float]
    peak: float
    peak_of_one: float | None
    largest_batch: int
    traffic: Mapping[str, float]
    flops: float
    repeated_flops: float
    run: Estimate | None
    note: str = ''


def lay_out(cfg: Config, machine: Machine, batch: int, images: float | None) -> list[Layout]:
    """Plan DDP, FSDP2 and HSDP, each without and with recomputing. The ranks must be pretended.

    Args:
        cfg: the config of a classifier.
        machine: what it is planned for.
        batch: images of a forward on a GPU.
        images: number of images that the run trains on; None if it is not known.

    Raises:
        ConfigError: if the config cannot be planned.
    """
    layouts = []
    for strategy, groups in _groups(machine).items():
        plain_flops, notes = None, ''
        for recompute in (False, True):
            forecast, group, note = _first_possible(cfg, machine, groups, recompute)
            groups, notes = [group], notes or note
            if forecast is None:
                layouts.append(Layout(strategy, 0, group, recompute, batch, {}, 0, 0, 0, {}, 0, 0, None, notes))
                continue
            cost, forwards = forecast.at(batch), forecast.steps[0].forwards
            flops = cost['flops'] / batch / forwards
            plain_flops = plain_flops or flops
            traffic = {link: cost[link] for link in ('within', 'between')}
            largest = forecast.largest_batch(machine.usable, batch)
            run = None if images is None else estimate(
                images, batch * forwards, machine.gpus, plain_flops, traffic, machine.peak_tflops, machine.utilisation,
                machine.gigabytes_per_s, flops - plain_flops, machine.price)
            layouts.append(Layout(
                strategy, forecast.num_parameters, group, recompute, batch, forecast.memory(batch),
                forecast.peak(batch), None if largest else forecast.peak(1), largest, traffic, plain_flops,
                flops - plain_flops, run, notes))
    return layouts


def _groups(machine: Machine) -> dict[str, list[int]]:
    """The strategies, and the sizes of their groups in the order of trying."""
    strategies = {'DDP': [1]}
    if machine.gpus > 1:
        strategies['FSDP2'] = [group for group in range(machine.gpus, 1, -1) if machine.gpus % group == 0]
    if machine.gpus > machine.gpus_per_node > 1:
        strategies['HSDP'] = [machine.gpus_per_node]
    return strategies


def _first_possible(cfg: Config, machine: Machine, groups: Sequence[int],
                    recompute: bool) -> tuple[Forecast | None, int, str]:
    """The forecast for the first group that the model can be sharded in, and why the groups before are not it."""
    note = ''
    for group in groups:
        try:
            setting = Setting(machine.gpus, machine.gpus_per_node, group, recompute)
            return Forecast(cfg, setting), group, note
        except ConfigError as error:
            if group == 1 or not str(error).startswith(('sharding:', 'optim_wrapper.optimizer:')):
                raise
            note = note or str(error)
    return None, groups[0], note


def best(layouts: Sequence[Layout], usable: int) -> Layout:
    """The layout that takes the shortest time of those that fit, or the simplest if times are not known.

    Raises:
        ConfigError: if none fits with a single image. It says by how much.
    """
    fitting = [layout for layout in layouts if layout.memory and layout.largest_batch]
    if not fitting:
        needed, i = min((layout.peak_of_one, i) for i, layout in enumerate(layouts) if layout.peak_of_one is not None)
        raise ConfigError(
            f'The model does not fit even with one image on a GPU: {describe(layouts[i])} takes the least, '
            f'{needed / GIB:.2f} GiB, which is {(needed - usable) / GIB:.2f} GiB more than the '
            f"usable {usable / GIB:.2f}; take GPUs with more memory, more GPUs, or a smaller model.")
    now = [layout for layout in fitting if layout.peak <= usable] or fitting
    return min(now, key=lambda layout: layout.run.step_s if layout.run else layout.recompute)


def describe(layout: Layout) -> str:
    """The layout in words, such as ``FSDP2 of 8 with recomputing``."""
    sharded = f'{layout.strategy} of {layout.group}' if layout.group > 1 else layout.strategy
    return sharded + (' with recomputing' if layout.recompute else '')


def as_record(machine: Machine, layouts: Sequence[Layout]) -> dict[str, Any]:
    """The plan as plain values, for a JSON file."""
    return dict(machine=asdict(machine), layouts=[asdict(layout) for layout in layouts])
