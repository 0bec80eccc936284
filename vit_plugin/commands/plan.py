"""Plan a multi-GPU training from its config: memory, largest batch, communication, time, cost.

    vit-plugin plan configs/vit/vit-base-p16_8xb64-20k_in1k-384px.py --gpus 64 --gpu-memory 80

It needs no GPU. The rows are DDP, FSDP2 and HSDP, each with no, selective and full activation
checkpointing. Modules of other libraries have no selective mode.
"""

import json
import logging
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict

from anyfolder.terminal import aligned
from vit_plugin.errors import ConfigError
from vit_plugin.measure.planning.cost import (
    GIB,
    GIGABYTES_PER_S,
    PAPER_CORE_DAYS,
    PEAK_TFLOPS,
    Cluster,
    count_run_images,
)

from .flags import a_file, add_flags, at_least

MIB = 1 << 20  # bytes
RECOMPUTE = {False: 'no', 'selective': 'selective', True: 'yes'}
# Kinds of memory. They equal tracing.MEMORY_KINDS, which is not imported here since it needs torch.
MEMORY_COLUMNS = ('parameters', 'gradients', 'optimizer', 'ema', 'gathered', 'activations')
PLAN_COLUMNS = (
    '',  # the layout's name
    'recompute',
    *MEMORY_COLUMNS,
    'peak MiB',
    'largest batch',
    'within MiB',
    'between MiB',
    'step s',
    'days',
)
# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller --batch-size'


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(parser, 'config', help='config file of a classifier')
    add_cluster(parser)
    add_flags(parser, '--batch-size', help="images on a GPU; default: the config's")
    parser.add_argument(
        '--num-images',
        type=at_least(1),
        metavar='NUMBER',
        help='images in the training set, for schedules in epochs',
    )
    parser.add_argument('--price', type=at_least(0, float), help='per GPU-hour, in any currency')
    add_flags(
        parser, '--out', type=a_file('.json'), metavar='FILE', help='a .json file for the plan'
    )
    add_flags(parser, '--cfg-options')


def add_cluster(parser: ArgumentParser) -> None:
    """Add the flags of :func:`build_cluster`."""
    parser.add_argument('--gpus', type=at_least(1), required=True, help='number of GPUs')
    parser.add_argument(
        '--gpu-memory',
        type=at_least(0.1, float, most=1e6),
        required=True,
        metavar='GIB',
        help='of one GPU',
    )
    parser.add_argument(
        '--gpus-per-node', type=at_least(1), default=8, help='GPUs in a machine; default: 8'
    )
    parser.add_argument(
        '--reserved',
        type=at_least(0, float, most=0.9),
        default=0.1,
        metavar='FRACTION',
        help="part of the memory for CUDA, NCCL and the allocator's gaps; default: 0.1",
    )
    parser.add_argument(
        '--peak-tflops',
        type=at_least(0.001, float),
        help=f"TFLOP/s of one GPU at best; default: H100's, {PEAK_TFLOPS}",
    )
    parser.add_argument(
        '--utilization',
        type=at_least(0.001, float, most=1),
        default=0.25,
        metavar='FRACTION',
        help='part of the peak that the arithmetic reaches; default: 0.25, as published for H100',
    )
    parser.add_argument(
        '--device-bandwidth',
        type=at_least(0.001, float),
        default=GIGABYTES_PER_S['within'],
        metavar='GB/S',
        help='from a GPU to the others in its machine, in one direction; default: 450',
    )
    parser.add_argument(
        '--node-bandwidth',
        type=at_least(0.001, float),
        default=GIGABYTES_PER_S['between'],
        metavar='GB/S',
        help="a GPU's share of its machine's network, in one direction; default: 50",
    )


def plan_heading(
    args: Namespace, arch: object, parameters: int, dtype: str, batch: int, cluster: Cluster
) -> str:
    """A sentence on what is planned: the model, its batch on a GPU, and the cluster."""
    return (
        f'{arch if isinstance(arch, str) else "Custom arch"}, '
        f'{parameters:,} parameters, computes in {dtype}; {batch} '
        f'images on each of {args.gpus:,} GPUs of {args.gpu_memory:g} GiB, of which '
        f'{cluster.memory / GIB:.3g} are usable'
    )


def plan_table(rows: Sequence) -> str:
    """The rows as aligned text. Memory is in MiB, by kind at the peak of a step."""
    cells = [
        (
            row.name,
            RECOMPUTE[row.recompute],
            *(_in_mib(row.memory[kind]) for kind in MEMORY_COLUMNS),
            _in_mib(row.peak),
            f'{row.largest_batch:,}',
            _in_mib(row.traffic['within']),
            _in_mib(row.traffic['between']),
            f'{row.step_s:.3g}',
            '' if row.days is None else f'{row.days:.3g}',
        )
        for row in rows
    ]
    return '\n'.join(aligned([PLAN_COLUMNS, *cells], numbers=True))


def _in_mib(size: float) -> str:
    return f'{size / MIB:,.0f}'


def plan_summary(
    row,
    flops: float,
    cluster: Cluster,
    batch: int,
    images: float | None,
    price: float | None,
    arch: object,
) -> list[str]:
    """Sentences on the time and cost of a step and of the run, in the layout of this row.

    Args:
        row: a :class:`~vit_plugin.measure.planning.layouts.PlannedLayout`.
        flops: operations for an image, forward and backward.
        cluster: the cluster.
        batch: images on a GPU.
        images: number of images of the run, or None if it is not known.
        price: price of a GPU-hour, or None.
        arch: the arch of the backbone, or the name of its class.
    """
    bound = 'arithmetic' if row.arithmetic_s >= row.messages_s else 'messages'
    lines = [
        f'An image takes {flops / 1e9:,.4g} GFLOP, forward and backward.',
        f'{row}, {batch} images on each of {cluster.gpus:,} GPUs, at {cluster.utilization:.0%} of '
        f'{cluster.peak_tflops:g} TFLOP/s: a step takes {row.step_s:.3g} s ({bound}; arithmetic '
        f'{row.arithmetic_s:.3g}, messages {row.messages_s:.3g}).',
    ]
    if images is None or row.days is None:
        return lines
    gpu_days = row.days * cluster.gpus
    cost = '' if price is None else f', {gpu_days * 24 * price:,.0f} at {price:g} per GPU-hour'
    lines.append(
        f'The run of {images:,.0f} images: {row.days:.3g} days, {gpu_days:,.4g} GPU-days{cost}; '
        f'as much as {cluster.core_days(images * flops):,.4g} TPUv3-core-days at that utilization.'
    )
    # The table's archs begin with a capital letter; a config may also write l/16.
    if days := PAPER_CORE_DAYS.get(str(arch)[:1].upper() + str(arch)[1:]):
        paper = ', '.join(f'{number:,} on {data}' for data, number in days.items())
        lines.append(
            f'The paper took for {arch} {paper} (TPUv3-core-days, arXiv:2010.11929, Table 2).'
        )
    return lines


def build_cluster(args: Namespace, dtype: str) -> Cluster:
    """The cluster that the flags describe, computing in this dtype."""
    return Cluster(
        gpus=args.gpus,
        gpus_per_node=args.gpus_per_node,
        memory=int(args.gpu_memory * GIB * (1 - args.reserved)),
        peak_tflops=args.peak_tflops or PEAK_TFLOPS[dtype],
        utilization=args.utilization,
        gigabytes_per_s=dict(within=args.device_bandwidth, between=args.node_bandwidth),
    )


def write_plan(args: Namespace, batch: int, cluster: Cluster, rows: Sequence) -> None:
    """Write the plan as JSON to ``--out``."""
    from anyfolder.complete import write_text

    record = dict(config=args.config, batch=batch, price=args.price, cluster=asdict(cluster))
    plan = dict(record, layouts=[asdict(row) for row in rows])
    write_text(args.out, json.dumps(plan, indent=1) + '\n')


def main(args: Namespace) -> None:
    import torch

    from anyfolder.complete import check_target
    from anyfolder.cores import cores
    from vit_plugin.config import check_channels, read_config
    from vit_plugin.config.scope import in_scope
    from vit_plugin.measure.planning import layouts, planned_model, traced_step

    warnings.simplefilter('ignore')  # the frameworks' own, at import
    if args.out:
        check_target(args.out, [args.config])
    cfg = read_config(args.config, args.cfg_options)
    with torch.device('meta'):
        model = planned_model.build_classifier(cfg)
    with in_scope(cfg.get('default_scope')):
        check_channels(cfg.model)
    batch = args.batch_size or (cfg.get('train_dataloader') or {}).get('batch_size', 1)
    dtype = planned_model.compute_dtype(cfg)
    cluster = build_cluster(args, dtype)
    images = count_run_images(cfg, batch * args.gpus, args.num_images)
    if args.price is not None and images is None:
        raise ConfigError(
            '--price: the config does not say how long it trains; add train_cfg.max_epochs or '
            'train_cfg.max_iters by --cfg-options, or leave it out.'
        )
    disabled = logging.root.manager.disable
    logging.disable(logging.INFO)  # every optimizer logs its groups when it is built
    try:
        with traced_step.pretended_ranks(args.gpus):
            rows, notes = layouts.plan_layouts(
                cfg, cluster, batch, images, model, processes=cores()
            )
    finally:
        logging.disable(disabled)
    arch = getattr(model.backbone, 'arch', type(model.backbone).__name__)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(plan_heading(args, arch, parameters, dtype, batch, cluster), plan_table(rows), sep='\n\n')
    for note in notes:
        print(f'\nNot planned as asked: {note}')
    if args.out:
        write_plan(args, batch, cluster, rows)
    chosen = layouts.choose_layout(rows, cluster.memory)
    lines = plan_summary(chosen, rows[0].flops, cluster, batch, images, args.price, arch)
    print('', *lines, sep='\n')
