"""Run a command, and report an error as one sentence in place of a traceback."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vit_plugin.commands import frameworks  # noqa: F401  first, since it says what is missing

# isort: split
import torch.distributed as dist
from mmengine.logging import MMLogger

from anyfolder.terminal import printable_lines
from vit_plugin.engine.distributed import report_with_rank
from vit_plugin.engine.faults.explain import TRAIN_WITH_LESS_MEMORY, error_sentence
from vit_plugin.engine.loggers import quieten
from vit_plugin.importable import make_importable
from vit_plugin.weights.for_mmengine import reading_safely


class TrainingError(RuntimeError):
    """An unknown error after the first step.

    It keeps its traceback, because repeating such a run is expensive.
    """


@contextmanager
def one_sentence_errors(
    traceback: bool = False, memory_advice: str = TRAIN_WITH_LESS_MEMORY
) -> Iterator[None]:
    """Within this context, an error ends the program with one sentence or a traceback.

    Reading a checkpoint in this context runs no code in it.

    Args:
        traceback: whether the error is raised unchanged, with its traceback.
        memory_advice: the advice for an out-of-memory error.
    """
    try:
        with reading_safely():
            yield
    except Exception as error:
        if traceback or isinstance(error, TrainingError):
            raise
        raise SystemExit(
            f'Error: {printable_lines(report_with_rank(error_sentence(error, memory_advice)))}'
        ) from error


def run_main(
    main: Callable[[argparse.Namespace], None],
    args: argparse.Namespace,
    memory_advice: str | None = None,
) -> None:
    """Run the ``main`` of a command, see :func:`one_sentence_errors`."""
    make_importable()
    if not getattr(args, 'verbose', False):
        # The frameworks log while they are imported.
        quieten(MMLogger.get_current_instance())
    with one_sentence_errors(args.traceback, memory_advice or TRAIN_WITH_LESS_MEMORY):
        main(args)
    if getattr(args, 'launcher', 'none') != 'none' and dist.is_initialized():
        dist.destroy_process_group()  # its threads could abort a rank that has finished
