"""Where weights come from: a file, an address, timm's or Hugging Face's hub."""

from collections.abc import Mapping
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from mmengine.runner import CheckpointLoader
from torch import Tensor

from vit_plugin.errors import ConfigError

from .files import find_weights, read_checkpoint, read_weights

HUB_FILES = ('model.safetensors', 'pytorch_model.bin')


def open_weights(source: str | Path) -> Mapping[str, Tensor]:
    """The weights at a path, ``http(s)://``, ``timm://<model>`` or ``hf://<org>/<model>``, by name.

    Raises:
        ConfigError: if they cannot be had or read.
    """
    scheme, _, rest = str(source).partition('://')
    if scheme in ('http', 'https'):
        return read_weights(_download(str(source)))
    if scheme == 'hf':
        return read_weights(_from_hugging_face(rest))
    if scheme == 'timm':
        return _from_timm(rest)
    return read_weights(source)


def _download(url: str) -> Path:
    folder = sha256(url.encode()).hexdigest()[:12]  # many hubs call all their files alike
    path = Path(torch.hub.get_dir(), 'checkpoints', folder, Path(urlparse(url).path).name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(url, str(path))
        except (OSError, HTTPException) as error:
            raise ConfigError(f'The checkpoint {url} cannot be fetched ({error}); fetch it by hand and give its '
                              'path.') from error
    return path


def _from_hugging_face(name: str) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError
    for file in HUB_FILES:
        try:
            return Path(hf_hub_download(name, file))
        except LocalEntryNotFoundError as error:
            raise ConfigError(f'hf://{name} cannot be fetched without the network; fetch it by hand and give its '
                              'path.') from error
        except EntryNotFoundError as error:
            if file == HUB_FILES[-1]:
                raise ConfigError(f'hf://{name} has none of {", ".join(HUB_FILES)}.') from error
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise ConfigError(f'hf://{name} cannot be fetched ({str(error).splitlines()[0]}); check the name and the '
                              'network, or fetch it by hand and give its path.') from error
    raise AssertionError


def _from_timm(name: str) -> Mapping[str, Tensor]:
    import timm
    try:
        return timm.create_model(name, pretrained=True).state_dict()
    except (RuntimeError, OSError, ValueError) as error:
        near = ', '.join(timm.list_pretrained(f'*{name.partition(".")[0]}*')[:5]) or 'none'
        raise ConfigError(f'timm://{name} cannot be had ({str(error).splitlines()[0]}); timm has weights for {near}, '
                          'and needs the network for them.') from error


@CheckpointLoader.register_scheme(prefixes=['', 'http://', 'https://', 'timm://', 'hf://'], force=True)
def load_from_any_format(filename: str, map_location: str | torch.device | None = None) -> Any:
    """What MMEngine's `init_cfg`, `load_from` and `resume` call for files and addresses, in place of its own readers.

    Of what ``torch.save`` wrote it gives all, as resuming needs it; if that has no ``state_dict``, the weights alone.
    """
    if filename.startswith(('http://', 'https://')):
        filename = str(_download(filename))
    if '://' in filename or filename.endswith(('.npz', '.safetensors')):
        return dict(open_weights(filename))
    content = read_checkpoint(filename, map_location=map_location or 'cpu')
    whole = isinstance(content, Mapping) and isinstance(content.get('state_dict'), Mapping)
    return content if whole else dict(find_weights(content))
