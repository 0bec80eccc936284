"""End a run when one of its processes is dead or hangs, and say which."""

import json
import logging
import multiprocessing
import os
import re
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple

import torch.distributed as dist
from mmengine.dist import get_rank, get_world_size
from mmengine.logging import print_log
from torch.distributed import PrefixStore

from ..processes import ANSWER, shared_store
from .places import Patience, Place, Seen, silent_ranks, stuck_ranks

BEAT = 1.  # seconds between two signs of life
LOST = 4.  # seconds without one after which a rank is dead, if a connection was lost too
# The errors of gloo, NCCL and torch's store when another rank is gone.
LOST_PEER = re.compile(r'gloo|nccl|connection|socket|peer|timed? ?out', re.IGNORECASE)


class Watch:
    """Threads that tell the other ranks where this one is, and end the process if the run cannot go on.

    Each rank tells it to the store of the run once a second. Rank 0 looks at all of them, and all look at rank 0. Who
    finds a rank that is dead or hangs says so in the store and in the log, and the others end without a word. A process
    that hangs on the same host is killed. A process whose torchrun has ended, ends too.

    Args:
        patience: seconds without a move after which a rank hangs.
        silence: seconds without a sign of life after which a rank is dead. At most ``patience.other`` counts.
    """

    def __init__(self, patience: Patience, silence: float) -> None:
        self.rank, self.world = get_rank(), get_world_size()
        self.patience, self.silence = patience, min(silence, patience.other)
        self.place = Place()
        # A shell that has ended, as after a logout, is no launcher that has.
        self._launcher = os.getppid() if 'TORCHELASTIC_RUN_ID' in os.environ else None
        run = [uuid.uuid4().hex]
        dist.broadcast_object_list(run)
        self._prefix = f'vit_plugin/watch/{run[0]}'
        self._connect()
        self._store.set(f'who/{self.rank}', json.dumps([socket.gethostname(), os.getpid()]))
        self._tell()
        dist.barrier()
        self._who = [json.loads(who) for who in self._store.multi_get([f'who/{i}' for i in range(self.world)])]
        self._seen = {rank: Seen() for rank in range(self.world)}
        self._answered = time.monotonic()
        self._leaving = threading.Event()
        self._suspects = self._failed = False
        self._talker = threading.Thread(target=self._talk, daemon=True, name='watch')
        self._talker.start()
        threading.Thread(target=self._guard, daemon=True, name='guard of the watch').start()

    def move(self, step: int, phase: str) -> None:
        """Note where the main thread is, see :meth:`Place.enter`."""
        self.place.enter(step, phase)

    def leave(self) -> None:
        """End the watch. The others need not wait for this rank any more."""
        self._leaving.set()
        self._talker.join()

    def fail(self, error: BaseException) -> None:
        """End the watch after an error. The others will end too, and leave it to this rank to show the error.

        A lost connection is the error of another rank. Then the watch ends the process as soon as it knows which.
        """
        if isinstance(error, RuntimeError) and LOST_PEER.search(str(error)):
            self._suspects = True
            time.sleep(LOST + 3 * BEAT + ANSWER)
        self._failed = True
        self.leave()

    def _talk(self) -> None:
        """Talk to the store. A request waits for ever if the process of the store is stopped."""
        while not self._leaving.wait(BEAT):
            try:
                self._beat()
            except RuntimeError:  # the process of the store has ended, or the connection is lost
                with suppress(RuntimeError):
                    self._connect()
        with suppress(RuntimeError):
            if self._failed:
                self._store.compare_set('verdict', '', json.dumps([]))
                time.sleep(2 * BEAT if self.rank == 0 else 0)  # it may serve the store
            else:
                self.place.phase = 'ended'
                self._beat()
                while self.rank == 0 and self._running():
                    time.sleep(BEAT / 5)
                    self._beat()

    def _guard(self) -> None:
        """End the process if its launcher has ended, or the store does not answer."""
        while self._talker.is_alive():
            self._talker.join(BEAT)
            if self._launcher not in (None, os.getppid()):
                self._end(['The launcher of this process has ended, so it ends too.'])
            quiet = time.monotonic() - self._answered
            if self._talker.is_alive() and quiet > self._silence() + BEAT:
                self._end([self._said([0], f'gave no sign of life for {quiet:.0f} s')] * self._speaks(), [0])

    def _silence(self) -> float:
        return min(LOST, self.silence) if self._suspects else self.silence

    def _beat(self) -> None:
        self._tell()
        if self._store.check(['verdict']):
            self._end([], json.loads(self._store.get('verdict')))
        judges_all = self.rank == 0 or self._suspects
        self._look(range(self.world) if judges_all else [0])
        self._answered = time.monotonic()
        ranks = {rank: seen for rank, seen in self._running().items() if judges_all or rank == 0}
        if silent := silent_ranks(ranks, self._silence()):
            self._accuse(silent, f'gave no sign of life for {self._silence():g} s')
        if judges_all and (stuck := stuck_ranks(ranks, self.patience)):
            self._accuse(stuck, f'came no further for {self.patience.of(ranks[stuck[0]].place):g} s')

    def _connect(self) -> None:
        self._store = PrefixStore(self._prefix, shared_store(ANSWER))

    def _tell(self) -> None:
        self.place.beats += 1
        place = self.place
        self._store.set(f'at/{self.rank}', json.dumps(astuple(place)))

    def _look(self, ranks: Iterable[int]) -> None:
        for rank, told in zip(ranks, self._store.multi_get([f'at/{rank}' for rank in ranks]), strict=True):
            self._seen[rank].update(Place(*json.loads(told)))

    def _running(self) -> dict[int, Seen]:
        return {rank: seen for rank, seen in self._seen.items() if seen.place.phase != 'ended'}

    def _accuse(self, ranks: list[int], what: str) -> None:
        verdict = json.dumps(ranks)
        mine = self._store.compare_set('verdict', '', verdict) == verdict.encode()
        self._end([self._said(ranks, what)] * mine, ranks)

    def _said(self, ranks: list[int], what: str) -> str:
        names = ', '.join('{} (process {} on {}), last {}'.format(rank, *reversed(self._who[rank]),
                                                                  self._seen[rank].place) for rank in ranks[:8])
        more = f' and {len(ranks) - 8} more' if len(ranks) > 8 else ''
        return (f'{"Rank" if len(ranks) == 1 else "Ranks"} {names}{more}: {what}. The run ends; go on with --resume. '
                f'What takes longer by right needs a higher {self.patience.setting(self._seen[ranks[0]].place)}.')

    def _speaks(self) -> bool:
        """Whether this rank speaks where rank 0 and the store are gone: the first on another host, or rank 1."""
        away = [rank for rank, (host, _) in enumerate(self._who) if host != self._who[0][0]]
        return self.rank == (away or [1])[0]

    def _end(self, sentences: list[str], ranks: Sequence[int] = ()) -> None:
        for sentence in sentences:
            print_log(sentence, 'current', logging.ERROR)
        # The others must hear of it, and rank 0 may serve the store. After another's error, a save may become whole.
        time.sleep((2 if self.rank in ranks else 3 if ranks else 5) * BEAT)
        for host, process in (self._who[rank] for rank in ranks if rank != self.rank):
            if host == self._who[self.rank][0]:  # a stopped process has not ended by itself
                with suppress(ProcessLookupError, PermissionError):
                    leads = os.getpgid(process) == process  # as launchers start it; its data workers are in the group
                    (os.killpg if leads else os.kill)(process, signal.SIGKILL)
        sys.stdout.flush()
        sys.stderr.flush()
        for worker in multiprocessing.active_children():
            worker.kill()
        os._exit(1)
