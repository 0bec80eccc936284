"""The site: ``sphinx-build -W -b html docs build/site``.

The pages are plain Markdown, so that they read as well on GitHub. What Sphinx needs besides is made
from them here: the navigation from the lists of index.md, and the reference from the modules that
api.md lists.
"""

import inspect
import re
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

import vit_plugin  # noqa: E402  after the path
import vit_plugin.detection  # noqa: E402  before anything imports MMDetection
from vit_plugin.registry import Registry  # noqa: E402

project = 'vit_plugin'
copyright = 'the authors of vit_plugin'
version = release = vit_plugin.__version__
extensions = [
    'myst_parser',
    'sphinx.ext.autodoc',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
    'sphinx_copybutton',
]

highlight_language = 'none'  # of fences without a language
html_theme = 'furo'
html_title = f'{project} {version}'
html_static_path = ['site.css']
html_css_files = ['site.css']
html_show_copyright = False
html_logo = html_favicon = 'logo.svg'

myst_heading_anchors = 4
myst_links_external_new_tab = True
myst_html_meta = {
    'description': (
        'Vision Transformer and hybrid CNN-ViT backbones for MMPretrain, MMDetection and '
        'MMSegmentation, with any of 267 timm ViTs by name.'
    )
}

autodoc_typehints_format = 'short'
python_maximum_signature_line_length = 88  # beyond it, an argument a line
autodoc_inherit_docstrings = False  # MMEngine's are not ours
autodoc_member_order = 'bysource'
napoleon_use_ivar = True  # a field of a tuple is documented once

PAGE_IN_LIST = re.compile(r'^- \[(.+?)\]\((\w+)\.md\)', re.MULTILINE)
CONFIG_LINK = re.compile(r'\]\(\.\./configs/([\w./+-]+\.(?:py|yml))\)')
MODULE_IN_LIST = re.compile(r'\[`([\w.]+)`\]\(\.\./[\w/]+\.py\)')


def navigation(index: str) -> str:
    """A hidden table of contents for each section of index.md that lists pages."""
    made = []
    for section in re.split(r'^## ', index, flags=re.MULTILINE)[1:]:
        entries = '\n'.join(f'{title} <{name}>' for title, name in PAGE_IN_LIST.findall(section))
        if entries:
            made.append(
                f'```{{toctree}}\n:hidden:\n:caption: {section.splitlines()[0]}\n\n{entries}\n```\n'
            )
    return '\n'.join(made)


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: its ``__all__``, or what it defines and imports lazily."""
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith('_')
        and callable(value)
        and getattr(value, '__module__', None) == module.__name__
    ]
    later = [
        name
        for value in vars(module).values()
        if isinstance(value, Registry)
        for name, place in value.lazy_modules.items()
        if place.startswith(f'{module.__name__}.')
        or (place.startswith('vit_plugin.projects.') and hasattr(module, '__getattr__'))
    ]
    return sorted({*getattr(module, '__all__', defined), *later})


def reference(modules: list[str]) -> dict[str, str]:
    """The page of each module. What an earlier one offers too is documented there."""
    made, known = {}, []
    for name in modules:
        module = import_module(name)
        offered = {member: getattr(module, member) for member in public_names(module)}
        own = {
            member: value
            for member, value in offered.items()
            if not any(value is other for other in known)
        }
        known.extend(own.values())
        made[name] = '\n'.join(
            [
                f'# {name}',
                '',
                '```{eval-rst}',
                f'.. automodule:: {name}',
                '   :no-members:',
                '',
                *(described(f'{name}.{member}', value) for member, value in own.items()),
                '```',
                '',
            ]
        )
    return made


def described(path: str, value: object) -> str:
    """The directive that documents an object."""
    if inspect.isclass(value):
        return f'.. autoclass:: {path}\n   :members:\n'
    if callable(value):
        return f'.. autofunction:: {path}\n'
    return f'.. py:data:: {path}\n\n   Its keys: {", ".join(f"``{key}``" for key in value)}.\n'


def write_reference(app) -> None:
    """Write the pages of the modules that api.md lists to docs/api/."""
    folder = DOCS / 'api'
    folder.mkdir(exist_ok=True)
    pages = reference(MODULE_IN_LIST.findall((DOCS / 'api.md').read_text()))
    for stale in {path.stem for path in folder.glob('*.md')} - pages.keys():
        (folder / f'{stale}.md').unlink()
    for name, text in pages.items():
        path = folder / f'{name}.md'
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def write_configs(app) -> None:
    """Write a page of docs/api/configs/ for each file of configs/ that a page links."""
    for name in {
        name for page in DOCS.glob('*.md') for name in CONFIG_LINK.findall(page.read_text())
    }:
        path = DOCS / f'api/configs/{name}.md'
        path.parent.mkdir(parents=True, exist_ok=True)
        language = 'python' if name.endswith('.py') else 'yaml'
        text = (
            f'---\norphan: true\n---\n\n# {Path(name).name}\n\n`configs/{name}`\n\n'
            f'```{language}\n{(ROOT / "configs" / name).read_text()}```\n'
        )
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def escape_stars(app, what, name, obj, options, lines: list[str]) -> None:
    """Two stars in the middle of a line are arguments, and not the beginning of bold text."""
    lines[:] = [
        re.sub(r'(?<=, )(\*{1,2})(?=\w)', lambda stars: '\\*' * len(stars[1]), line)
        for line in lines
    ]


def plain_types(app, function: object, bound: bool) -> None:
    """Show the types of arguments without the checks in them."""
    for each in (function, inspect.unwrap(function)):  # Sphinx reads both
        with suppress(NameError, TypeError, AttributeError):  # a name that only type checkers have
            each.__annotations__ = get_type_hints(each)


def for_sphinx(app, docname: str, source: list[str]) -> None:
    """Add to a page what only the site has."""
    if docname == 'index':
        source[0] += '\n' + navigation(source[0])
    elif docname == 'api':
        names = '\n'.join(f'api/{name}' for name in MODULE_IN_LIST.findall(source[0]))
        source[0] = MODULE_IN_LIST.sub(r'[`\1`](api/\1.md)', source[0])
        source[0] += f'\n```{{toctree}}\n:hidden:\n\n{names}\n```\n'
    elif whole := re.fullmatch(
        r'\[[\w.]+\]\((\.\./[A-Z]+\.md)\)\n', source[0]
    ):  # a page that is a file at the top
        source[0] = (DOCS / whole[1]).read_text().replace('](docs/', '](')
    source[0] = CONFIG_LINK.sub(r'](api/configs/\1.md)', source[0])
    source[0] = re.sub(
        r'\]\((?:\.\./)?([A-Z]+)\.md', lambda top: f']({top[1].lower()}.md', source[0]
    )


def setup(app) -> None:
    """Called by Sphinx."""
    app.connect('builder-inited', write_reference)
    app.connect('builder-inited', write_configs)
    app.connect('source-read', for_sphinx)
    app.connect('autodoc-before-process-signature', plain_types)
    app.connect('autodoc-process-docstring', escape_stars, priority=400)  # before napoleon
