"""The command ``vit-plugin``, from any directory.

    vit-plugin train vit_plugin::hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py

A command is a module of :mod:`vit_plugin.commands`. Nothing but the chosen one is imported.
"""

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from vit_plugin import __version__
from vit_plugin.commands import COMMANDS
from vit_plugin.commands.moved import moved_command, run_moved_command
from vit_plugin.errors import ConfigError, MissingExtraError
from vit_plugin.files.standard_streams import set_up_streams
from vit_plugin.suggestions import suggestion


def usage() -> str:
    """Text of ``--help``: the commands, with the first line of each module's docstring."""
    folder = Path(__file__).with_name('commands')
    lines = []
    for name in COMMANDS:
        # Parsed, since importing every command would take seconds.
        docstring = ast.get_docstring(ast.parse((folder / f'{name}.py').read_text())) or ''
        summary = docstring.partition('\n')[0]
        lines.append(f'  {name:<11} {summary}')
    return '\n'.join(
        [
            'usage: vit-plugin COMMAND [arguments]',
            '',
            *lines,
            '',
            'vit-plugin COMMAND --help shows the arguments of a command, vit-plugin --version the '
            'version.',
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the command and its arguments. Default: those of the process.

    Returns:
        The exit status. A command may also end the process itself.
    """
    set_up_streams()
    name, *arguments = list(sys.argv[1:] if argv is None else argv) or ['--help']
    if name == '--version':
        print(__version__)
        return 0
    if name in ('-h', '--help'):
        print(usage())
        return 0
    former = moved_command(name, arguments)  # a command of an earlier version, or None
    if not former and name not in COMMANDS:
        remedy = suggestion(name, COMMANDS)
        print(f'Error: vit-plugin has no command {name!r}; {remedy}', file=sys.stderr)
        return 2
    sys.argv = [f'vit-plugin {name}', *arguments]  # argparse takes the first as the program's name
    try:
        if former:
            run_moved_command(former, arguments)
        from vit_plugin.commands.entry import run_command

        run_command(import_module(f'vit_plugin.commands.{name}'))
    except (ConfigError, MissingExtraError) as error:
        if '--traceback' in arguments:
            raise
        print(f'Error: {error}', file=sys.stderr)
        return 1
    return 0


def script(name: str) -> NoReturn:
    """Run a command from its script in ``tools/``, with the arguments of the process."""
    sys.exit(main([name, *sys.argv[1:]]))


if __name__ == '__main__':
    sys.exit(main())
