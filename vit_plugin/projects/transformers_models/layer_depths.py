"""The stages and layers of transformers' models, and the depth of each parameter."""

from collections.abc import Mapping

from torch import nn

from vit_plugin.errors import ConfigError

# Last names of the modules that hold the stages of a model, and the layers of a stage.
STAGE_LISTS, LAYER_LISTS = ('stages', 'layers', 'blocks', 'layer', 'block'), ('layers', 'blocks')


def find_stages(model: nn.Module) -> tuple[str, nn.ModuleList]:
    """The name and the list of the stages, or of the blocks of an encoder of one width."""
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and name.rpartition('.')[2] in STAGE_LISTS:
            return name, module
    raise ConfigError('TransformersBackbone: this model has no list of stages; take another.')


def find_layers(model: nn.Module) -> Mapping[str, nn.Module]:
    """The layers of all stages in order, by their names."""
    list_name, stages = find_stages(model)
    layers_by_name: dict[str, nn.Module] = {}
    for i, stage in enumerate(stages):
        lists = [
            (name, module)
            for name, module in stage.named_modules()
            if name.rpartition('.')[2] in LAYER_LISTS
            and isinstance(module, (nn.ModuleList, nn.Sequential))
        ]
        if not lists:
            layers_by_name[f'{list_name}.{i}'] = stage  # the block of an encoder of one width
            continue
        inner, layers = lists[0]
        layers_by_name |= {
            f'{list_name}.{i}.{inner}.{name}': layer for name, layer in layers.named_children()
        }
    return layers_by_name


def find_depths(model: nn.Module) -> dict[str, int]:
    """The depth of each parameter: 0 before the layers, from 1 within, and the last one after."""
    layers = {name: number for number, name in enumerate(find_layers(model), 1)}
    list_name, _ = find_stages(model)
    depths: dict[str, int] = {}
    current = 0  # depth of the last layer so far; parameters are in the order of the modules
    for name, _ in model.named_parameters():
        inside = [number for layer, number in layers.items() if name.startswith(f'{layer}.')]
        if inside:
            current = inside[0]
        is_after = current > 0 and not name.startswith(f'{list_name}.')
        depths[name] = len(layers) + 1 if is_after else current
    return depths
