"""The listing of a data set: what all readers return, whatever the format of the folder."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from anyfolder.errors import InputError
from anyfolder.text import decode_unknown

from .class_names import class_name
from .findings import Findings
from .mask_classes import MaskValues
from .path_text import folder_of
from .records import ImageRecord, Parts, Records


@dataclass
class Listing:
    """Images and annotations of a data set, checked against its files.

    Attributes:
        form: the name of the format: ``'COCO'``, ``'folders of classes'``.
        folder: the folder of the data.
        classes: the names of the classes with training data, in the order of their numbers.
        parts: the images of each split. The test split may be empty.
        held_out: whether ``val`` was drawn from the training images.
        findings: the findings of the readers.
        masks: the class of each mask value.
        multi_label: whether an image may have several classes, or none.
        stuff: for panoptic data, the number of stuff classes, which are the last ones.
    """

    form: str
    folder: Path
    classes: tuple[str, ...]
    parts: Parts
    held_out: bool
    findings: Findings
    masks: MaskValues | None = None
    multi_label: bool = False
    stuff: int | None = None

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each class, from 0 on."""
        return {name: number for number, name in enumerate(self.classes)}

    @cached_property
    def _folders(self) -> dict[str, Path]:
        """The folders of the images as in their paths, and the same as absolute paths."""
        names = {folder_of(record.path) for part in self.parts.values() for record in part}
        return {name: Path(name).absolute() for name in names}

    @cached_property
    def root(self) -> Path:
        """The innermost folder that contains all images, absolute."""
        return Path(os.path.commonpath(self._folders.values()))

    @cached_property
    def _prefixes(self) -> dict[str, str]:
        """The prefix of image names in each folder, below :attr:`root`."""
        within = {name: folder.relative_to(self.root) for name, folder in self._folders.items()}
        return {
            name: f'{folder.as_posix()}/' if folder.parts else '' for name, folder in within.items()
        }

    @cached_property
    def bands(self) -> int:
        """The number of bands of all images, 0 for photographs.

        Raises:
            InputError: if two images have different numbers of bands.
        """
        records = [record for part in self.parts.values() for record in part]
        record_of: dict[int, ImageRecord] = {
            record.bands: record for record in records if record.bands is not None
        }
        if len(record_of) > 1:
            first, second = (
                f'{str(record.path)!r} ' + (f'has {bands} bands' if bands else 'is an image')
                for bands, record in list(record_of.items())[:2]
            )
            raise InputError(
                f'{first}, and {second}; a model takes one number of bands: remove one of them '
                'out of the folder.'
            )
        return next(iter(record_of), 0)

    @property
    def train(self) -> Records:
        """The images to train on."""
        return self.parts['train']

    @property
    def val(self) -> Records:
        """The images to validate on."""
        return self.parts['val']

    @property
    def unseen(self) -> tuple[str, ...]:
        """Classes without a validation image."""
        counts = self.counts(self.val)
        return tuple(name for name in self.classes if name not in counts)

    @property
    def relative_boxes(self) -> np.ndarray:
        """Width and height (N, 2) of each training box, relative to its image's longer side."""
        sides = [
            (instance.box[2] / max(record.size), instance.box[3] / max(record.size))
            for record in self.train
            for instance in record.instances
            if not instance.crowd
        ]
        return np.array(sides, dtype=float).reshape(-1, 2)

    def name_of(self, record: ImageRecord) -> str:
        """The path of an image below :attr:`root`, with ``/``."""
        folder, _, name = str(record.path).rpartition(os.sep)
        return self._prefixes[folder] + name

    def counts(self, part: Iterable[ImageRecord]) -> Counter[str]:
        """The number of images of each class, or of objects for images without classes."""
        counts = Counter[str]()
        for record in part:
            objects = (instance.name for instance in record.instances if not instance.crowd)
            counts.update(record.labels or objects)
        return counts

    def as_coco(self, part: Records) -> str:
        """Images with boxes, as the text of a COCO JSON file that any COCO reader accepts."""
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for number, record in enumerate(part, 1):
            width, height = record.size
            images.append(
                dict(id=number, file_name=self.name_of(record), width=width, height=height)
            )
            for instance in record.instances:
                # A region to be ignored, whatever its class, is written once for each class.
                for name in [instance.name] if instance.name else self.classes:
                    annotations.append(
                        dict(
                            id=len(annotations) + 1,
                            image_id=number,
                            category_id=self.numbers[name] + 1,
                            bbox=[round(value, 3) for value in instance.box],
                            area=round(float(instance.area), 3),
                            iscrowd=int(instance.crowd),
                            segmentation=instance.segmentation or [],
                        )
                    )
        categories = [
            dict(id=number, name=name, supercategory='')
            for number, name in enumerate(self.classes, 1)
        ]
        return json.dumps(
            dict(
                info=dict(description=f'{self.form} of {self.folder.name}'),
                licenses=[],
                images=images,
                annotations=annotations,
                categories=categories,
            )
        )


def is_encodable(text: str) -> bool:
    """True if a name is UTF-8, so it can be written to a text file."""
    return text.isascii() or not any('\ud800' <= letter <= '\udfff' for letter in text)


def folder_class_name(name: str) -> str:
    """A folder name as a class name, decoded if it is not UTF-8.

    Raises:
        InputError: if its encoding is not known, see :func:`~anyfolder.text.decode_unknown`.
    """
    if not is_encodable(name):
        name = decode_unknown(
            os.fsencode(name), name, 'rename this folder in UTF-8, as convmv does'
        )
    return class_name(name)
