"""Read the fenced blocks, commands and links of README and docs/, and run a page.

Tests check that each command of a page is run by a test (`RUN_PAGES`, `RUN_BY`) or has a reason why
not (`NOT_RUN`).
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r'^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$',
    re.DOTALL | re.MULTILINE,
)
# One command, with its continued lines or its here-document.
COMMAND = re.compile(r"(?:.*<<'(?P<end>\w+)'\n(?:.*\n)*?(?P=end)|(?:.*\\\n)*.*)(?:\n|$)")
# Placeholder in capitals -> a number for it.
NUMBERS = dict(N='2', GIB='80', GPUS='2', PIXELS='224', SCORE='0.3', SEED='1')

# Pages whose commands a test runs in their order, with run_page.
RUN_PAGES = {
    'docs/start.md': 'tests/test_pages.py',
    'docs/gallery.md': 'tests/test_pages.py',
    'docs/first_steps.md': 'tests/test_first_steps.py',
    'docs/pytorch.md': 'tests/test_first_steps.py',
}
# Pages whose Python programs need the programs before them on the page.
IN_ORDER = ('docs/first_steps.md', 'docs/pytorch.md', 'docs/walkthrough.md')
# Pattern of the beginning of commands -> the test that runs them on small data and with all flags.
# `{}` stands for the first group of the pattern.
RUN_BY = {
    r'(?:python tools/|vit-plugin )(?:train|test)\b': 'tests/commands/test_train_and_test.py',
    r'(?:python tools/|vit-plugin )'
    r'(demo|export|infer|plan|pretrain|probe|visualize)\b': ('tests/commands/test_{}.py'),
    r'(?:python tools/convert_weights\.py|vit-plugin convert)\b': (
        'tests/commands/test_convert.py'
    ),
    r'(?:python tools/|vit-plugin )embed\b': 'tests/commands/test_train_on_folders.py',
    r'tools/(dist_train)\.sh': 'tests/commands/test_train_and_test.py',
    r'tools/(slurm_train)\.sh': 'tests/commands/test_slurm.py',
    r'vit-plugin (doctor)': 'tests/doctor/test_doctor.py',
    r'vit-plugin (zoo)': 'tests/zoo/test_catalog.py',
    r'python -m (vit_plugin\.detection)': 'tests/detection/test_ext.py',
    r'(mim train)': 'benchmarks/wheel.py',
    r'python benchmarks (pipelines|plain_loop)\b': 'tests/benchmarks/test_pipelines.py',
    r'python benchmarks '
    r'(blocks|decoders|defaults|dense_probe|depth|few_validated|runtimes|speed|sweep)\b': (
        'tests/benchmarks/test_{}.py'
    ),
    r'python benchmarks models\b': 'tests/benchmarks/test_equal_minutes.py',
    r'python -m (pytest)': 'tests/commands/test_bad_calls.py',
    r'(\.ci/check|ruff check|mypy|pre-commit)': '.ci/check',
    r'(coverage run)': '.github/workflows/nightly.yml',
}
# Pattern of the beginning of commands and Python programs that no test of a page runs -> why not.
# Tests still parse their flags, and check their paths and names.
NOT_RUN = {
    r'(python3 -m venv|pip |unzip -j efficientnet|git clone|.*MMCV_WITH_OPS=1)': (
        'from the network: .ci/run, benchmarks/wheel.py'
    ),
    r'python benchmarks (focus|continue_dinov3|transfer)': 'needs a wheel from the network',
    r'python benchmarks exported --rounds': "needs another program's file",
    r'docker ': 'needs a daemon: .github/workflows/nightly.yml',
    r'cat > g\+\+20|chmod \+x g\+\+20': 'mmcv compiles for ten minutes; done by hand, see the page',
    r'vit-plugin pretrain --data photos': 'downloads weights, for photographs that nobody has here',
    r'vit-plugin train --data fields': 'needs images of several bands, which nobody has here',
    r'vit-plugin train --data flowers': 'downloads weights, for photographs that nobody has here',
    r'(# predict\.py|import vit_plugin\n\n(print\(|model = )vit_plugin\.load)': (
        'needs a checkpoint: tests/inference/test_trained_model.py'
    ),
    r'vit-plugin demo( CHECKPOINT)?$': 'serves until it is stopped: tests/commands/test_demo.py',
    r'from vit_plugin\.models import .*\n\nprint\(load': (
        "needs the authors' file: tests/weights/test_formats.py"
    ),
    r'import json\nimport math\nimport sys\n\nimport cv2\n|import openvino\n|g\+\+ -O2|\./detect': (
        'needs an exported file: tests/deploy/test_deployment_page.py'
    ),
    r'python run_image_classification|vit-plugin (infer|convert) out |from transformers import p': (
        "transformers' example, and a run of it: tests/deploy/hub/test_transformers_folder.py"
    ),
    r'python train\.py --dataset Synapse': "another repository's",
}


@dataclass(frozen=True)
class Block:
    """A fenced block. ``line`` is that of the first line of its text, counted from 1."""

    page: str
    line: int
    language: str
    text: str

    def commands(self) -> list[str]:
        """The commands of a bash block.

        Continued lines and here-documents are one command. Lines of comments are left out;
        comments after a command stay.
        """
        return [
            command[0].rstrip('\n')
            for command in COMMAND.finditer(self.text)
            if command[0].strip() and not command[0].startswith('#')
        ]


def pages() -> list[str]:
    """README.md, CHANGELOG.md, CONTRIBUTING.md and the pages of docs/, relative to the root."""
    top = [
        name for name in ('README.md', 'CHANGELOG.md', 'CONTRIBUTING.md') if (ROOT / name).exists()
    ]
    return top + sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / 'docs').glob('*.md'))


def blocks(page: str, *languages: str) -> Iterator[Block]:
    """The fenced blocks of a page in these languages; without any, all of them."""
    text = (ROOT / page).read_text()
    for match in FENCE.finditer(text):
        if not languages or match['language'] in languages:
            indent = len(match['indent'])
            content = ''.join(line[indent:] for line in match['text'].splitlines(keepends=True))
            yield Block(
                page, text.count('\n', 0, match.start('text')) + 1, match['language'], content
            )


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub('', (ROOT / page).read_text())


def inline_commands(page: str) -> list[str]:
    """Whole command lines in the prose of a page, such as ``python tools/x.py --flag``."""
    code = [' '.join(text.split()) for text in re.findall(r'`([^`]+)`', prose(page))]
    program = re.compile(r'(python (-m|(tools|tests)/\S+)|vit-plugin [a-z]+|tools/\S+) \S')
    return [text for text in code if program.match(text)]


def forms(command: str) -> list[str]:
    """The command lines that a synopsis such as ``x CONFIG [--resume | --amp] --to {a,b}`` allows.

    One for each combination of choices in brackets or braces. Optional parts are always there.
    """
    choice = re.search(r'(?<!\S)\[(?P<brackets>[^][]*)\]|\{(?P<braces>[^{}]*)\}', command)
    if not choice:
        return [
            re.sub(
                r'\b[A-Z]+\b',
                lambda word: NUMBERS.get(word[0], word[0]),
                command.replace(' ...', ''),
            )
        ]
    if choice['brackets'] is not None:
        options = choice['brackets'].split(' | ')
    else:
        options = choice['braces'].split(',')
    return [
        form
        for option in options
        for form in forms(command[: choice.start()] + option + command[choice.end() :])
    ]


def words(command: str) -> list[list[str]]:
    """The words of each program of a command line, without comments and environment variables."""
    programs = [
        shlex.split(part, comments=True) for part in command.replace('\\\n', ' ').split(' && ')
    ]
    for program in programs:
        while program and re.match(r'[A-Z_]+=', program[0]):
            del program[0]
    return programs


def why_not_run(command: str) -> str | None:
    """The reason of :data:`NOT_RUN` for a command, if it has one."""
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, command)), None)


def run_by(command: str) -> str | None:
    """The test that :data:`RUN_BY` names for a command."""
    program = re.sub(r'^([A-Z_]+=\S+ |\\\n *)+', '', command)
    for pattern, test in RUN_BY.items():
        if match := re.match(pattern, program):
            return test.format(*match.groups())
    return None


def links(page: str) -> list[str]:
    """The targets of the links and pictures of a page, except web addresses."""
    # One of the two groups is empty.
    pairs = re.findall(
        r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"', re.sub(r'`[^`\n]*`', '', prose(page))
    )
    return [target for pair in pairs for target in pair if target and not re.match(r'\w+:', target)]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    slugs: list[str] = []
    for title in re.findall(r'^#+ +(.+?) *$', FENCE.sub('', page.read_text()), re.MULTILINE):
        title = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', title)
        slug = re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')
        earlier = sum(
            re.fullmatch(re.escape(slug) + r'(-\d+)?', other) is not None for other in slugs
        )
        slugs.append(f'{slug}-{earlier}' if earlier else slug)
    return set(slugs)


def script(block: Block, values: Mapping[str, str]) -> str:
    """A block as lines of bash, with values for words in capitals.

    A Python block runs in a Python of its own. If its first line is a comment with the name of a
    file, such as ``# mine.py``, it is written to that file instead.
    """
    if block.language == 'python':
        named = re.match(r'# ([\w./-]+\.py)\n', block.text)
        program = f'cat > {named[1]}' if named else 'python -'
        text = f"{program} <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK\n"
    else:
        run = [command for command in block.commands() if not why_not_run(command)]
        text = '\n'.join(run) + '\n'
    filled = re.sub(r'\b[A-Z][A-Z_0-9]+\b', lambda word: values.get(word[0], word[0]), text)
    return f"echo '+ {block.page}:{block.line}'\n{filled}"


def run_page(
    page: str, folder: Path, values: Mapping[str, str] | None = None, timeout: float = 3600.0
) -> str:
    """Run the bash and Python blocks of a page in their order, in one shell, as a reader would.

    Commands and programs that :data:`NOT_RUN` excuses are left out.

    Args:
        page: path relative to the root, such as ``'docs/first_steps.md'``.
        folder: the shell's working directory.
        values: the values of words in capitals, such as ``{'CHECKPOINT': 'epoch_1.pth'}``.
        timeout: seconds for the whole page.

    Returns:
        What the commands print. If one fails, the test fails with the end of it.
    """
    run = [
        block
        for block in blocks(page, 'bash', 'python')
        if block.language == 'bash' or not why_not_run(block.text)
    ]
    lines = ['set -euo pipefail', *(script(block, values or {}) for block in run)]
    env = {
        **os.environ,
        'PYTHONPATH': str(ROOT),
        'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
    }
    done = subprocess.run(
        ['bash', '-c', '\n'.join(lines)],
        cwd=folder,
        env=env,
        timeout=timeout,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        pytest.fail(
            f'{page} ended with status {done.returncode}:\n{done.stdout[-4000:]}', pytrace=False
        )
    return done.stdout
