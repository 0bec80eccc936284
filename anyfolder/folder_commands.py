"""The commands of ``anyfolder``, each a function of its name. They print lines, or JSON.

They are not in ``__main__`` because their imports take long.
"""

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from .complete import replacing
from .dataset import Dataset
from .facts import as_text, facts_of
from .pictures.label_sheet import draw_sheet, encode_png
from .reading import read
from .terminal import printable
from .writers.conversion import plan_conversion
from .writers.own_folders import check_no_source


def check(args: Namespace) -> None:
    """Print the format and content of a folder."""
    _print(args, args.folder, _read(args))


def convert(args: Namespace) -> None:
    """Write a folder in another format, read the result, and print its content."""
    plan = plan_conversion(_read(args), args.out, args.to, args.lossy)
    if not args.json:
        for sentence in plan.sentences:
            print(sentence, flush=True)
    _print(args, args.out, plan.write(args.copy), changes=[*plan.sentences])


def show(args: Namespace) -> None:
    """Draw the labels of a folder into a file, and print its name."""
    data = _read(args)
    out = Path(args.out or f'{Path(os.path.abspath(args.folder)).name}_labels.png')
    check_no_source(data, out)
    picture = encode_png(draw_sheet(data))
    with replacing(out) as path:
        path.write_bytes(picture)
    if args.json:
        print(json.dumps(dict(picture=str(out)), indent=1))
    else:
        print(f'{printable(args.folder)}: {_summary(data)}.\nThe labels are in {printable(out)}.')


def _read(args: Namespace) -> Dataset:
    return read(
        args.folder,
        args.task,
        skip_invalid=args.skip_invalid,
        depth_scale=args.depth_scale,
        decode_all=args.decode_all,
        layout=args.layout,
    )


def _summary(data: Dataset) -> str:
    held_out = ', a tenth of the images held out for validation' if data.held_out else ''
    classes = f'{len(data.classes)} classes' if data.classes else 'no classes'
    return f'{printable(data.format)}, for {data.task}, {classes}{held_out}'


def _print(args: Namespace, folder: str, data: Dataset, **entries: Any) -> None:
    """Print the content of a folder as lines, or as JSON with further entries."""
    facts = facts_of(data.listing)
    if args.json:
        print(json.dumps(_json_content(data, facts) | entries, indent=1))
        return
    print(f'{printable(folder)}: {_summary(data)}.')
    if data.classes:
        print(f'Classes: {", ".join(map(printable, data.classes))}')
    print(as_text(facts))


def _json_content(data: Dataset, facts: dict[str, Any]) -> dict[str, Any]:
    """The summary of :func:`~.facts.facts_of`, under the names of :class:`anyfolder.Dataset`."""
    return dict(
        task=data.task,
        format=facts['form'],
        folder=facts['folder'],
        classes=facts['classes'],
        splits=facts['parts'],
        held_out=data.held_out,
        sizes=facts['sizes'],
        notes=facts['findings'],
    )
