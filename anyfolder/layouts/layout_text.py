"""Write a layout as the text of its file, as in error messages that propose one."""

from collections.abc import Mapping
from typing import Any

import yaml

END = '...\n'  # PyYAML's end of a document that is a single scalar


class _Dumper(yaml.SafeDumper):
    """Writes None as ``~``, and repeated values in full rather than as anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    type(None), lambda dumper, _: dumper.represent_scalar('tag:yaml.org,2002:null', '~')
)


def layout_as_yaml(content: Mapping[str, Any]) -> str:
    """A layout as YAML, one key on each line."""
    lines = []
    # `width`: no line is wrapped.
    options = dict(default_flow_style=True, sort_keys=False, allow_unicode=True, width=1e6)
    for key, value in content.items():
        text = yaml.dump(value, Dumper=_Dumper, **options)
        lines.append(f'{key}: {text.removesuffix(END).strip()}\n')
    return ''.join(lines)
