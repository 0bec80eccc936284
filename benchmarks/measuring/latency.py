"""Measure the time and memory of one image on a CPU, for common models in three runtimes.

Each measurement is a process of its own (``one_image.py``), so that its memory is that of a program
that does nothing else. ``benchmarks speed --latency`` prints the table.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.files.untrusted_text import markdown_table
from vit_plugin.models.classifier import create_model

MODELS = (
    'Ti/16',
    'S/16',
    'B/16',
    'L/16',
    'R+Ti/16',
    'R26+S/32',
    'R50+B/16',
    'timm://vit_small_patch14_reg4_dinov2',
)
# Title of a column -> the runtime (see one_image.RUNTIMES), and the dtype of its ONNX file.
VARIANTS = {'eager': ('eager', ''), 'ONNX': ('onnx', 'float32'), 'int8': ('onnx', 'int8')}


@dataclass(frozen=True)
class Latency:
    """A row of the table. Times and memory are by the keys of :data:`VARIANTS`."""

    model: str
    pixels: int  # side of the image
    parameters: int
    ms: dict[str, float]  # median of the rounds
    mib: dict[str, float]  # largest resident memory of the process, with its libraries


def latency(model: str, side: int, threads: int, rounds: int) -> Latency:
    """Measure a classifier of 1000 classes with random weights.

    Args:
        model: an arch of :func:`~vit_plugin.models.classifier.create_model`.
        side: side of the image in pixels.
        threads: number of threads of the CPU.
        rounds: number of calls; their median counts.

    Raises:
        ConfigError: if there is no such model, or if it cannot be exported.
        MissingExtraError: if onnx, onnxscript or onnxruntime is not installed.
    """
    classifier = create_model(model, img_size=side)
    ms, mib = {}, {}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter('ignore')  # the exporter's own
        for variant, (runtime, dtype) in VARIANTS.items():
            source = model
            if dtype:
                source = str(Path(folder, f'{dtype}.onnx'))
                export(deploy(classifier), Path(source), (side, side), dtype)
            cost = _in_a_process(runtime, source, side, threads, rounds)
            ms[variant], mib[variant] = cost['ms'], cost['mib']
    num_parameters = sum(parameter.numel() for parameter in classifier.parameters())
    return Latency(model, side, num_parameters, ms, mib)


def _in_a_process(runtime: str, source: str, *numbers: int) -> dict[str, float]:
    """Run ``one_image.py``. Its result has the keys ``ms`` and ``mib``."""
    program = [sys.executable, '-W', 'ignore', str(Path(__file__).with_name('one_image.py'))]
    done = subprocess.run(
        [*program, runtime, source, *map(str, numbers)], capture_output=True, text=True
    )
    if done.returncode:
        reason = done.stderr.strip().rpartition('\n')[2]
        raise ConfigError(
            f'--latency: {source} by {runtime} ended with status {done.returncode} '
            f'({first_line(RuntimeError(reason))}); take a smaller model, or make room in memory.'
        )
    return json.loads(done.stdout.splitlines()[-1])


def as_markdown(rows: Sequence[Latency]) -> str:
    """The rows as the table in the docs."""
    columns = [f'{variant}, {unit}' for unit in ('ms', 'MiB') for variant in VARIANTS]
    table = [['model', 'pixels', 'M parameters', *columns]]
    for row in rows:
        cells = [f'`{row.model}`', f'{row.pixels}', f'{row.parameters / 1e6:.1f}']
        cells += [f'{row.ms[variant]:.1f}' for variant in VARIANTS] + [
            f'{row.mib[variant]:.0f}' for variant in VARIANTS
        ]
        table.append(cells)
    return markdown_table(table, numbers=2 + len(columns))
