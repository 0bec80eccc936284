"""Write a COCO annotation file, for benchmarks and tests that draw images."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class CocoFile:
    """Images and their objects, in the order in which they are added.

    Args:
        classes: their names. The first has the category id 1.
    """

    def __init__(self, classes: Sequence[str]) -> None:
        self.categories = [dict(id=number, name=name) for number, name in enumerate(classes, 1)]
        self.images: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []

    def add_image(self, name: str, width: int, height: int) -> None:
        """Add an image. The objects that are added next belong to it."""
        number = len(self.images) + 1
        self.images.append(dict(id=number, file_name=name, width=width, height=height))

    def add(self, label: int, box: Sequence[float], **others: Any) -> None:
        """Add an object of the image that was added last.

        Args:
            label: number of its class, from 0.
            box: left, top, width and height in pixels.
            **others: further entries. ``area`` and ``iscrowd`` replace the area of the box and 0.
        """
        defaults = dict(area=box[2] * box[3], iscrowd=0)
        self.annotations.append(
            dict(
                id=len(self.annotations) + 1,
                image_id=self.images[-1]['id'],
                category_id=label + 1,
                bbox=list(box),
                **{**defaults, **others},
            )
        )

    def write(self, path: Path) -> None:
        """Write the file, and create its folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = dict(info={}, licenses=[], images=self.images, annotations=self.annotations)
        path.write_text(json.dumps(dict(content, categories=self.categories)))
