"""``data_report.md`` and ``.json``: what a data set has, and what was left out or repaired.

The argument ``facts`` is the mapping that :func:`anyfolder.facts.facts_of` returns.
"""

import json
from collections.abc import Mapping
from typing import Any

from vit_plugin.files.untrusted_text import escape_markdown
from vit_plugin.report.data_table import data_table

MAX_EXAMPLES = 200  # examples per kind of problem


def report_as_markdown(facts: Mapping[str, Any]) -> str:
    """The page ``data_report.md``: images and objects by class and split, omissions and repairs."""
    lines = [
        f'# {escape_markdown(facts["folder"])}',
        '',
        f'{facts["form"]}, {len(facts["classes"])} classes.',
        '',
    ]
    table = data_table(facts['parts'], facts['classes'])
    return '\n'.join([*lines, table, '', *problem_lines(facts['findings'])]) + '\n'


def problem_lines(problems: list[dict[str, Any]]) -> list[str]:
    """A section for each kind of omission or repair."""
    lines = []
    for problem in problems:
        lines += [
            f'## {escape_markdown(problem["what"])}: {problem["count"]}',
            '',
            *(f'- {escape_markdown(example)}' for example in problem['examples'][:MAX_EXAMPLES]),
            '',
        ]
    return lines


def as_json(facts: Mapping[str, Any]) -> str:
    """The content of ``data_report.json``."""
    return json.dumps(facts, indent=1) + '\n'
