"""A cache of probed images, so that a folder is not decoded twice.

Each line of its file has the name of an image and its :class:`~.probe.Probe`. A line is valid until
the image's size or modification time changes; the file, until OpenCV or Pillow is updated, or a
probe has other fields.
"""

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from subprocess import DEVNULL, PIPE, Popen

import cv2
import PIL
from PIL import Image
from tqdm import tqdm

from anyfolder.cores import cores
from anyfolder.sampling import evenly_spaced
from anyfolder.wording import option

from .probe import Probe, probe_images, state_of

CACHE_NAME = 'decoded_images.jsonl'  # the file in the work directory of a training
SAMPLE = 100  # maximum number of images that are decoded unless all are requested
BATCH = 32  # images that a process gets at once
MAX_IN_THREADS = 1000  # up to this number of images, no process is started
THREADS = 8  # threads that wait for the disk
# The first line of the file. Other decoders may support other images.
HEADER = f'opencv {cv2.__version__}, pillow {PIL.__version__}: {", ".join(Probe._fields)}'


class ProbeCache:
    """The probed images of a folder.

    Args:
        folder: the folder of the data.
        file: where results are cached. Default: nowhere.
        decode_all: whether all images are decoded, rather than a sample.

    Attributes:
        images: the number of images that were to be probed.
        decoded, unreadable: how many of these were decoded, now or earlier, and how many could not
            be.
        window: the values to show as black and white for images of more than 8 bits per value; set
            by :func:`~.image_sizes.read_sizes`.
    """

    def __init__(
        self, folder: str = '.', file: Path | None = None, decode_all: bool = False
    ) -> None:
        start = os.path.join(Path(folder), '')
        self._start = '' if start == os.path.join('.', '') else start
        self.file, self.decode_all = file, decode_all
        self.images = self.decoded = self.unreadable = 0
        self.window: tuple[float, float] | None = None

    @property
    def summary(self) -> str:
        """The number of decoded images, as a sentence."""
        if self.decoded == self.images:
            return f'All {self.images} images were decoded.'
        remarks = []
        if self.unreadable:
            remarks.append(f'{self.unreadable} cannot be read')
        if self.decoded + self.unreadable < self.images:
            remarks.append(f'{option("decode_all", True)} decodes all')
        return f'{self.decoded} of {self.images} images were decoded; {"; ".join(remarks)}.'

    def probe(self, paths: Sequence[Path], headers: bool = True) -> list[Probe | None]:
        """Probe images: decode all or a sample of those that are not cached.

        Args:
            paths: the images.
            headers: whether to read the headers of the images that are not decoded. If not, their
                probes are None.
        """
        names = list(dict.fromkeys(map(os.fspath, paths)))
        probes = self._read_cached(names)
        uncached = [name for name in names if name not in probes]
        if self.decode_all:
            probes = self._decode(uncached, probes)
        else:
            probes |= _probes(_sample(uncached), fully_decoded=True)
        self.images += len(names)
        unreadable = sum(bool(probe.fault) for probe in probes.values())
        self.unreadable += unreadable
        self.decoded += len(probes) - unreadable
        if headers:
            probes |= _probes(
                [name for name in uncached if name not in probes], fully_decoded=False
            )
            # For images of more than 8 bits, the range of values must be known from some.
            high_bit = [name for name in names if probes[name].bits > 8]
            if not any(probes[name].values for name in high_bit):
                probes |= _probes(_sample(high_bit), fully_decoded=True)
        return [probes.get(os.fspath(path)) for path in paths]

    def _read_cached(self, names: Iterable[str]) -> dict[str, Probe]:
        """The cached results of unchanged images."""
        stored = dict(self._read_lines())
        valid = {}
        for name in names if stored else ():
            probe = stored.get(name.removeprefix(self._start))
            with suppress(OSError):  # the image no longer exists
                if probe and probe.state == state_of(name):
                    valid[name] = probe
        return valid

    def _read_lines(self) -> Iterator[tuple[str, Probe]]:
        """The name and the probe on each line of the file; nothing if its header is another one."""
        if not self.file or not self.file.is_file():
            return
        with self.file.open(encoding='utf-8') as lines:
            if next(lines, '').strip() == HEADER:
                for line in lines:
                    with suppress(ValueError):  # a check was interrupted while it wrote the line
                        name, probe = json.loads(line)
                        yield name, Probe(*probe)

    def _decode(self, names: Sequence[str], cached: dict[str, Probe]) -> dict[str, Probe]:
        """Decode images, and rewrite the file with the cached and the new results.

        It is written line by line, so that an interrupted check keeps what it has.
        """
        if not names or not self.file:
            return cached | _probes(names, fully_decoded=True)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        probed = {}
        with (
            self.file.open('w', encoding='utf-8') as file,
            closing(_probe_all(names, fully_decoded=True)) as probes,
        ):
            file.write(f'{HEADER}\n')
            for name, probe in chain(cached.items(), probes):
                probed[name] = probe
                file.write(f'{json.dumps((name.removeprefix(self._start), probe))}\n')
        return probed


def _sample(names: Sequence[str]) -> list[str]:
    return [names[i] for i in evenly_spaced(len(names), SAMPLE)]


def _probes(names: Sequence[str], fully_decoded: bool) -> dict[str, Probe]:
    return dict(_probe_all(names, fully_decoded))


def _probe_all(
    names: Sequence[str], fully_decoded: bool
) -> Generator[tuple[str, Probe], None, None]:
    """Probe images, in processes if many have to be decoded."""
    in_processes = fully_decoded and len(names) > MAX_IN_THREADS
    batches = [names[i : i + BATCH] for i in range(0, len(names), BATCH)]
    with ExitStack() as stack:
        if in_processes:
            probe = stack.enter_context(_decoders())
        else:
            probe = partial(probe_images, fully_decoded=fully_decoded)
        pool = ThreadPoolExecutor(THREADS)
        stack.callback(pool.shutdown, cancel_futures=True)
        disable = None if in_processes else True  # None: shown in a terminal only
        progress = tqdm(total=len(names), desc='Decoding', leave=False, disable=disable)
        stack.callback(progress.close)
        for batch, probes in zip(batches, pool.map(probe, batches), strict=True):
            yield from zip(batch, probes, strict=True)
            progress.update(len(batch))


@contextmanager
def _decoders() -> Iterator[Callable[[Sequence[str]], Sequence[Probe]]]:
    """A function that lets processes decode images.

    They share nothing with this process: a fork with threads can hang, and a crash in a decoder
    ends its process.
    """
    command = [sys.executable, '-m', probe_images.__module__, json.dumps(Image.MAX_IMAGE_PIXELS)]
    # In a new session, they do not receive Ctrl-C.
    start = partial(
        Popen,
        command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        text=True,
        start_new_session=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    idle = SimpleQueue[Popen]()

    def ask(names: Sequence[str]) -> Sequence[Probe]:
        process = idle.get()
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            print(json.dumps(names), file=process.stdin, flush=True)
        if line := process.stdout.readline():
            idle.put(process)
            return [Probe(*probe) for probe in json.loads(line)]
        # The process has ended. Its images are probed one by one, to find the one that ended it.
        idle.put(stack.enter_context(start()))
        if len(names) > 1:
            return [probe for name in names for probe in ask([name])]
        return [Probe(fault=f'its decoder ended with {process.wait()}')]

    with ExitStack() as stack:
        for _ in range(cores()):
            idle.put(stack.enter_context(start()))
        if ask([]):  # a working decoder answers [] with []; a dead one gives a fault
            raise RuntimeError(f'{command} does not run')
        yield ask
