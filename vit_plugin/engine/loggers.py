"""Loggers whose console shows what users of the commands ask for; the log file has the rest."""

import io
import logging
import sys
from dataclasses import dataclass

from mmengine.logging.logger import MMFormatter

from vit_plugin.files.untrusted_text import PrintableMessages

# How messages begin that only the log file gets.
FILE_ONLY = (
    'System environment',
    'Config:',
    'Hooks will be executed',
    'paramwise_options -- ',
    'Groups of parameters:',
    'Distributed training is not used',
    'Checkpoints will be saved to',
    'Exp name: ',
    'The schedules, made for',
    'Evaluating ',
    # False alarms: we compile nothing, MMEngine itself uses what it warns of, and mIoU has no
    # prefix by design.
    'Line NMS is not compiled',
    '"FileClient" will be deprecated',
    '"HardDiskBackend" is the alias',
    'The prefix is not set in metric class',
    'bbox_mAP_copypaste',
    'segm_mAP_copypaste',
    'Average ',  # pycocotools' twelve lines
)  # the last ones repeat the line of the validation
CALL_SITE = '%(pathname)s - %(funcName)s - %(lineno)d - '  # in MMEngine's lines of errors


@dataclass(frozen=True)
class Without:
    """Keeps the messages that begin with none of these words."""

    starts: tuple[str, ...]

    def __call__(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().lstrip('\n -').startswith(self.starts)


def quieten(logger: logging.Logger, starts: tuple[str, ...] = FILE_ONLY) -> None:
    """Leave to the files of a logger the messages that begin with one of these words."""
    print_safely(logger)
    for handler in consoles(logger):
        handler.addFilter(Without(starts))
        if in_terminal():
            handler.setFormatter(Plain())


def print_safely(logger: logging.Logger) -> None:
    """Let messages have names of files and classes in them, whatever these are."""
    if not any(isinstance(one, PrintableMessages) for one in logger.filters):
        logger.addFilter(PrintableMessages())
    for handler in logger.handlers:
        if isinstance(handler.formatter, MMFormatter):
            # MMEngine logs for others: the line in its logger says nothing of where an error is.
            handler.formatter.err_format = handler.formatter.err_format.replace(CALL_SITE, '')
        # A log file is in the encoding of the system.
        stream = getattr(handler, 'stream', None)
        if isinstance(stream, io.TextIOWrapper) and not stream.closed:
            stream.reconfigure(errors='backslashreplace')


def consoles(logger: logging.Logger) -> list[logging.Handler]:
    """The handlers of a logger that write to the console."""
    return [handler for handler in logger.handlers if not isinstance(handler, logging.FileHandler)]


def in_terminal() -> bool:
    """True if the output is a terminal, and not a file or a pipe."""
    return sys.stdout.isatty()


class Plain(logging.Formatter):
    """A message as it is. What is more than information begins with its level."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        level = record.levelname.capitalize()
        return message if record.levelno <= logging.INFO else f'{level}: {message}'
