"""The command ``vit-plugin``: the tools by their names, from any directory.

    vit-plugin train vit_plugin::hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py

Every Python file in tools/ is a command. Nothing but the chosen one is imported.
"""

import ast
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from vit_plugin import __version__
from vit_plugin.errors import ConfigError, MissingExtraError
from vit_plugin.files.shipped import shipped
from vit_plugin.files.standard_streams import set_up_streams
from vit_plugin.suggestions import suggestion

RENAMED = {'convert_weights': 'convert'}
NOT_COMMANDS = ('torchrun',)  # which the scripts next to it call


def commands() -> dict[str, Path]:
    """The file of each command."""
    tools = {
        path.stem: path
        for path in sorted(shipped('tools').glob('*.py'))
        if path.stem not in NOT_COMMANDS
    }
    return {RENAMED.get(name, name): path for name, path in tools.items()}


def usage(files: dict[str, Path]) -> str:
    """Text of ``--help``: the commands, with the first line of each file's docstring."""
    said = {
        name: (ast.get_docstring(ast.parse(path.read_text())) or '').partition('\n')[0]
        for name, path in files.items()
    }
    lines = [f'  {name:<11} {what}' for name, what in said.items()]
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
    """Run a command. Its arguments are those of the tool.

    Args:
        argv: the command and its arguments. Default: those of the process.

    Returns:
        The status. A tool may also end the process itself.
    """
    set_up_streams()
    name, *arguments = list(sys.argv[1:] if argv is None else argv) or ['--help']
    if name == '--version':
        print(__version__)
        return 0
    try:
        files = commands()
        if name in files:
            return run(name, files[name], arguments)
    except (ConfigError, MissingExtraError) as error:
        print(f'Error: {error}', file=sys.stderr)
        return 1
    if name in ('-h', '--help'):
        print(usage(files))
        return 0
    print(f'Error: vit-plugin has no command {name!r}; {suggestion(name, files)}', file=sys.stderr)
    return 2


def run(name: str, file: Path, arguments: Sequence[str]) -> int:
    """Run one command. Returns the status."""
    # Argparse takes the first for the name of the program.
    sys.argv = [f'vit-plugin {name}', *arguments]
    from vit_plugin.commands.flags import run_tool

    spec: Any = spec_from_file_location(file.stem, file)
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    run_tool(
        tool.make_parser(),
        tool.main,
        getattr(tool, 'needs_torch', None),
        getattr(tool, 'check', None),
    )
    return 0


if __name__ == '__main__':
    sys.exit(main())
