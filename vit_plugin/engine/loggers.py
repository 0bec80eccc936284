"""Keep the console output of a logger brief and printable. The log file still has everything."""

import io
import logging
import sys
from dataclasses import dataclass

from mmengine.logging.logger import MMFormatter

from vit_plugin.files.untrusted_text import PrintableMessages

# Prefixes of messages that only the log file gets.
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
    # False alarms: nothing needs to be compiled, MMEngine itself uses what it calls deprecated, and
    # mIoU has no prefix by design.
    'Line NMS is not compiled',
    '"FileClient" will be deprecated',
    '"HardDiskBackend" is the alias',
    'The prefix is not set in metric class',
    # These repeat the log line of the validation.
    'bbox_mAP_copypaste',
    'segm_mAP_copypaste',
    'Average ',  # pycocotools' twelve lines
)
CALL_SITE = '%(pathname)s - %(funcName)s - %(lineno)d - '  # in MMEngine's error lines


@dataclass(frozen=True)
class PrefixFilter:
    """A logging filter that drops messages with one of these prefixes."""

    prefixes: tuple[str, ...]

    def __call__(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().lstrip('\n -').startswith(self.prefixes)


def quieten(logger: logging.Logger, prefixes: tuple[str, ...] = FILE_ONLY) -> None:
    """Keep messages with one of these prefixes off the console, but in the log files.

    In a terminal, the other messages are shown without time and logger.
    """
    make_printable(logger)
    for handler in console_handlers(logger):
        handler.addFilter(PrefixFilter(prefixes))
        if is_in_terminal():
            handler.setFormatter(MessageFormatter())


def make_printable(logger: logging.Logger) -> None:
    """Escape what a console cannot print: control characters and unknown encodings.

    Names of files and classes in messages come from data, which may be untrusted.
    """
    if not any(isinstance(filtering, PrintableMessages) for filtering in logger.filters):
        logger.addFilter(PrintableMessages())
    for handler in logger.handlers:
        if isinstance(handler.formatter, MMFormatter):
            # Its call site would be MMEngine's logging function, not the place of the error.
            handler.formatter.err_format = handler.formatter.err_format.replace(CALL_SITE, '')
        # The encoding of the system may lack characters of a message.
        stream = getattr(handler, 'stream', None)
        if isinstance(stream, io.TextIOWrapper) and not stream.closed:
            stream.reconfigure(errors='backslashreplace')


def console_handlers(logger: logging.Logger) -> list[logging.Handler]:
    """The handlers of a logger that write to the console."""
    return [handler for handler in logger.handlers if not isinstance(handler, logging.FileHandler)]


def is_in_terminal() -> bool:
    """True if the output is a terminal, and not a file or a pipe."""
    return sys.stdout.isatty()


class MessageFormatter(logging.Formatter):
    """A formatter that shows only the message, with its level above INFO."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        level = record.levelname.capitalize()
        return message if record.levelno <= logging.INFO else f'{level}: {message}'
