"""The beginnings of files, kept for another try."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path


class Parts:
    """The beginning of a file, kept beside its place until the rest is there.

    Its name has the version of the file on the server (its ``ETag``, or its date), so that no two versions are joined.
    What has no version is never gone on with.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, headers: Mapping[str, str]) -> Path:
        """The part of the version that an answer's headers name."""
        tag = headers.get('ETag', '').strip()
        version = headers.get('Last-Modified') if not tag or tag.startswith('W/') else tag
        if 'Content-Encoding' in headers or not version:
            return self._named('none')
        return self._named(sha256(version.encode()).hexdigest()[:8])

    def kept(self) -> Path | None:
        """The part to go on with, or None."""
        whole = [path for path in self._all() if path != self._named('none') and path.stat().st_size]
        return max(whole, key=lambda path: path.stat().st_mtime_ns, default=None)

    def size(self) -> int:
        """Bytes of the part to go on with."""
        kept = self.kept()
        return kept.stat().st_size if kept else 0

    def drop(self, but: Path | None = None) -> None:
        """Delete the parts, except one."""
        for path in self._all():
            if path != but:
                path.unlink(missing_ok=True)

    def drop_what_has_no_version(self) -> None:
        """Delete the part that no later request can go on with."""
        self._named('none').unlink(missing_ok=True)

    def _all(self) -> list[Path]:
        start, end = f'{self.path.stem}.part-', self.path.suffix
        return [path for path in self.path.parent.iterdir() if path.name.startswith(start) and path.name.endswith(end)]

    def _named(self, version: str) -> Path:  # with the suffix, by which files are read
        return self.path.with_name(f'{self.path.stem}.part-{version}{self.path.suffix}')
