"""Plan a training run on many GPUs, from the config alone: memory, largest batch, messages, time and money.

    python tools/plan.py configs/vit/vit-base-p16_8xb64-20k_in1k-384px.py --gpus 64 --gpu-memory 80

It needs no GPU. The rows are DDP, FSDP2 and HSDP, each without and with recomputing of activations.
"""

import argparse
import json
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

from vit_plugin.apps.flags import add_cfg_options, at_least, run_tool
from vit_plugin.apps.planning.building import check_classifier, computes_in
from vit_plugin.apps.planning.cost import GIGABYTES_PER_S, PEAK_TFLOPS, images_of_run, paper_core_days
from vit_plugin.apps.planning.layouts import GIB, MIB, Layout, Machine, as_record, best, describe, lay_out
from vit_plugin.apps.planning.step import pretended_ranks
from vit_plugin.engine.checks import check_channels
from vit_plugin.engine.config import read_config
from vit_plugin.writing import check_target, write_text

COLUMNS = ('', 'recompute', 'parameters', 'gradients', 'optimizer', 'ema', 'gathered', 'activations', 'peak MiB',
           'largest batch', 'within MiB', 'between MiB', 'step s', 'days')


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Plan the memory, time and cost of a training run without a GPU.')
    parser.add_argument('config', help='config file of a classifier')
    parser.add_argument('--gpus', type=at_least(1), required=True, help='number of GPUs')
    parser.add_argument('--gpu-memory', type=at_least(0.1, float, 1e6), required=True, metavar='GIB', help='of one GPU')
    parser.add_argument('--gpus-per-node', type=at_least(1), default=8, help='GPUs in a machine; default 8')
    parser.add_argument('--batch', type=at_least(1), help="images on a GPU; default: the config's")
    parser.add_argument('--images', type=at_least(1), help='images in the training set, for schedules in epochs')
    parser.add_argument('--reserved', type=at_least(0, float, 0.9), default=0.1, metavar='PART',
                        help="part of the memory for CUDA, NCCL and the allocator's gaps; default 0.1")
    parser.add_argument('--peak-tflops', type=at_least(0.001, float),
                        help=f"TFLOP/s of one GPU at best; default: H100's, {PEAK_TFLOPS}")
    parser.add_argument('--utilisation', type=at_least(0.001, float, 1), default=0.4, metavar='PART',
                        help='part of the peak that the arithmetic reaches; default 0.4')
    parser.add_argument('--device-bandwidth', type=at_least(0.001, float), default=GIGABYTES_PER_S['within'],
                        metavar='GB/S', help='of a GPU to the others in its machine, in one direction; default 450')
    parser.add_argument('--node-bandwidth', type=at_least(0.001, float), default=GIGABYTES_PER_S['between'],
                        metavar='GB/S', help="a GPU's share of its machine's network, in one direction; default 50")
    parser.add_argument('--price', type=at_least(0, float), help="of a GPU's hour, in any currency")
    parser.add_argument('--out', type=Path, metavar='FILE', help='write the plan as JSON')
    add_cfg_options(parser)
    return parser


def table(layouts: Sequence[Layout]) -> str:
    """The rows as aligned text. Memory is in MiB, by kind at the peak of a step."""
    lines = [COLUMNS]
    for layout in layouts:
        start = f'{layout.strategy} of {layout.group}' if layout.group > 1 else layout.strategy
        cells = [f'{layout.memory[kind] / MIB:,.0f}' for kind in COLUMNS[2:8]] if layout.memory else []
        if cells:
            cells += [f'{layout.peak / MIB:,.0f}', f'{layout.largest_batch:,}',
                      *(f'{layout.traffic[link] / MIB:,.0f}' for link in ('within', 'between'))]
        if layout.run:
            cells += [f'{layout.run.step_s:.3g}', f'{layout.run.days:.3g}']
        lines.append((start, 'yes' if layout.recompute else 'no', *cells))
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(COLUMNS))]
    return '\n'.join('  '.join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                            zip(line[1:], widths[1:], strict=False))])
                     for line in lines)


def summary(chosen: Layout, machine: Machine, arch: object) -> list[str]:
    """What the whole run takes in one of the layouts."""
    lines = [f'An image takes {chosen.flops / 1e9:,.4g} GFLOP, forward and backward'
             f'{f", and {chosen.repeated_flops / 1e9:,.4g} more with recomputing" if chosen.recompute else ""}.']
    if chosen.run is None:
        return lines
    run, bound = chosen.run, 'arithmetic' if chosen.run.arithmetic_s >= chosen.run.messages_s else 'messages'
    price = '' if run.price is None else f', {run.price:,.0f} at {machine.price:g} per GPU-hour'
    lines += [f'{describe(chosen)}, {chosen.batch} images on each of {machine.gpus:,} GPUs, at '
              f'{machine.utilisation:.0%} of {machine.peak_tflops:g} TFLOP/s: a step takes {run.step_s:.3g} s '
              f'({bound}; arithmetic {run.arithmetic_s:.3g}, messages {run.messages_s:.3g}).',
              f'The run of {run.images:,.0f} images, {run.exaflops:,.4g} exaFLOP: {run.days:.3g} days, '
              f'{run.gpu_days:,.4g} GPU-days{price}; '
              f'as much as {run.core_days:,.4g} TPUv3-core-days at that utilisation.']
    if days := paper_core_days(arch):
        paper = ', '.join(f'{number:,} on {data}' for data, number in days.items())
        lines.append(f'The paper took for {arch} {paper} (TPUv3-core-days, arXiv:2010.11929, Table 2).')
    return lines


def main(args: argparse.Namespace) -> None:
    warnings.simplefilter('ignore')  # the frameworks' own, at import
    if args.out:
        check_target(args.out, [args.config])
    cfg = read_config(args.config, args.cfg_options)
    check_classifier(cfg)
    check_channels(cfg.model)
    batch = args.batch or (cfg.get('train_dataloader') or {}).get('batch_size', 1)
    dtype = computes_in(cfg)
    machine = Machine(args.gpus, args.gpus_per_node, int(args.gpu_memory * GIB), args.reserved,
                      args.peak_tflops or PEAK_TFLOPS[dtype], args.utilisation,
                      dict(within=args.device_bandwidth, between=args.node_bandwidth), args.price)
    images = images_of_run(cfg, batch * args.gpus, args.images)
    logging.disable(logging.INFO)  # each optimizer that is built tells its groups
    try:
        with pretended_ranks(args.gpus):
            layouts = lay_out(cfg, machine, batch, images)
    finally:
        logging.disable(logging.NOTSET)
    arch = cfg.model.backbone.get('arch', 'B/16')
    named = arch if isinstance(arch, str) else 'Custom arch'
    print(f'{named}, {layouts[0].num_parameters:,} parameters, computes in {dtype}; {batch} images on each of '
          f'{args.gpus:,} GPUs of {args.gpu_memory:g} GiB, of which {machine.usable / GIB:.3g} are usable\n')
    print(table(layouts))
    for note in dict.fromkeys(layout.note for layout in layouts if layout.note):
        print(f'\nNot planned as asked: {note}')
    if args.out:
        write_text(args.out, json.dumps(dict(config=args.config, **as_record(machine, layouts)), indent=1) + '\n')
    print('\n' + '\n'.join(summary(best(layouts, machine.usable), machine, arch)))


if __name__ == '__main__':
    run_tool(make_parser(), main)
