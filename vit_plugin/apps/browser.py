"""A page in the browser: drop a picture, see its classes and what the model sees in it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mmengine.registry import DATASETS

from vit_plugin.config.scope import in_scope
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.models.loading import find_backbone
from vit_plugin.visualization.pictures import PER_IMAGE, PreparedImage
from vit_plugin.visualization.style import as_pixels

from .predictions import NUM_TOP
from .same_site import guards
from .trained_model import TrainedModel

if TYPE_CHECKING:
    import gradio

EXAMPLES = 3
LARGEST = 64_000_000  # bytes of an upload; how many pixels it may have, the reader of images says
LONGEST = 10  # sides of a picture; the weights of attention grow with the square of this
ABOUT = """This model says what is in a picture, and shows what it looked at.
Drop a picture of what it was trained on.
More patches make finer pictures."""
# A title for each picture, and what stands below it.
PANELS = {
    'attention': (
        'Attention',
        'Each panel is a head of the chosen block: bright patches are those that the class '
        'token, or the mean of all patches, takes most from. A dark panel looks everywhere alike.',
    ),
    'rollout': (
        'Attention rolled out through the blocks',
        'What of each patch has reached the class token, or the '
        'mean of the patches, after this block.',
    ),
    'features': (
        'Features as colours',
        'Patches of one colour have similar features (three principal components as '
        'red, green, blue).',
    ),
    'cam': (
        'What speaks for the most probable class',
        'Bright patches raise the score of the class (Grad-CAM).',
    ),
}


def draw_all(
    trained: TrainedModel, image: PreparedImage, block: int = -1
) -> dict[str, np.ndarray | str]:
    """Every picture of :data:`~vit_plugin.visualization.pictures.PER_IMAGE`, by its name.

    Args:
        trained: the model.
        image: the image.
        block: the block for attention and rollout, from 1; -1 is the last.

    Returns:
        The pixels (H, W, 3) of a picture, or the sentence why this model has none.
    """
    options = dict(
        attention=dict(blocks=[block]),
        rollout=dict(blocks=[block]),
        cam=dict(classes=trained.classes),
    )
    found: dict[str, np.ndarray | str] = {}
    for name, draw in PER_IMAGE.items():
        try:
            found[name] = as_pixels(draw(trained.model, image, **options.get(name, {})))
        except ConfigError as error:
            found[name] = str(error)
    return found


def prepare(trained: TrainedModel, path: str, size: int | None = None) -> PreparedImage:
    """An image file as the model gets it.

    Raises:
        ConfigError: if it cannot be read, or is too long for its weights of attention.
    """
    image = trained.prepare(path, size)
    short, long = sorted(image.covered)
    if long > LONGEST * short:
        raise ConfigError(
            f'One side of the picture is more than {LONGEST} times the other; crop it.'
        )
    return image


def examples(trained: TrainedModel) -> list[str]:
    """Image files of the model's test data, or none where they are not on this machine.

    There are none either where only a checkpoint names them.
    """
    dataset = (trained.cfg.get('test_dataloader') or {}).get('dataset')
    if not dataset or trained.stranger:
        return []
    try:
        with in_scope(trained.cfg.default_scope):
            data = DATASETS.build(dataset)
    except Exception:  # noqa: BLE001  a data set of another machine
        return []
    indices = np.linspace(0, len(data) - 1, min(EXAMPLES, len(data))).astype(int)
    paths = [data.get_data_info(int(i)).get('img_path') for i in indices]
    return [path for path in paths if path and Path(path).is_file()]


def page(trained: TrainedModel, title: str, size: int | None = None) -> 'gradio.Blocks':
    """The page. It asks nothing of the network, and keeps the pictures for at most two hours.

    Raises:
        MissingExtraError: if Gradio is not installed.
    """
    with needed_by('vit-plugin demo'):
        import gradio as gr

    def answer(path: str | None, block: int) -> list:
        if path is None:
            return [gr.skip()] * len(outputs)
        try:
            image = prepare(trained, path, size)
        except ConfigError as error:
            raise gr.Error(
                str(error).replace(repr(path), 'that you gave'), print_exception=False
            ) from None
        try:
            found = trained(path)
            text, scores = (
                found.text(),
                {row['class']: row['score'] for row in found.rows() if 'score' in row},
            )
        except ConfigError as error:
            text, scores = str(error), {}
        is_label = bool(scores) and trained.task == 'classification'
        values = [
            gr.Label(scores or None, visible=is_label),
            gr.Markdown(text, visible=not is_label),
        ]
        for name, picture in draw_all(trained, image, block).items():
            title, caption = PANELS[name]
            reason = picture if isinstance(picture, str) else None
            values += [
                gr.Markdown(f'### {title}\n{reason or caption}', visible=True),
                gr.Image(None if reason else picture, visible=not reason),
            ]
        return values

    count = find_backbone(trained.model)[1].num_layers
    with gr.Blocks(title=title, analytics_enabled=False, delete_cache=(3600, 3600)) as blocks:
        gr.Markdown(f'# {title}\n{ABOUT}')
        with gr.Row():
            with gr.Column(scale=2):
                picture = gr.Image(image_mode=None, label='Drop a picture', type='filepath')
                # Gradio would open the file first, with errors of its own. For a subclass it would
                # write a stub file.
                picture.preprocess = lambda upload: upload and upload.path
                if found := examples(trained):
                    gr.Examples(found, picture, label='From its test images', cache_examples=False)
                block = gr.Slider(1, count, count, step=1, label='Block of attention and rollout')
                outputs = [
                    gr.Label(label='Classes', num_top_classes=NUM_TOP),
                    gr.Markdown(visible=False),
                ]
            with gr.Column(scale=3):
                for name in PER_IMAGE:
                    outputs += [
                        gr.Markdown(visible=False),
                        gr.Image(
                            format='png',
                            interactive=False,
                            visible=False,
                            show_label=False,
                            container=False,
                            buttons=['fullscreen'],
                            alt_text=PANELS[name][0],
                        ),
                    ]
        gr.on([picture.change, block.release], answer, [picture, block], outputs, api_name=False)
    return blocks.queue(default_concurrency_limit=1)


def serve(blocks: 'gradio.Blocks', port: int) -> None:
    """Show a :func:`page` at http://127.0.0.1:PORT until interrupted. No other site may ask it.

    Raises:
        ConfigError: if the port is taken.
    """
    import gradio as gr

    # Others come from the network.
    theme = gr.themes.Default(font=['system-ui', 'sans-serif'], font_mono=['monospace'])
    try:
        _, url, _ = blocks.launch(
            server_name='127.0.0.1',
            server_port=port,
            theme=theme,
            footer_links=[],
            run_history=False,
            ssr_mode=False,
            max_file_size=LARGEST,
            app_kwargs=dict(middleware=guards()),
            quiet=True,
            prevent_thread_lock=True,
        )
    except OSError as error:
        raise ConfigError(f'--port {port} is taken by another program; give another.') from error
    print(f'The page is at {url}. Ctrl-C ends it.', flush=True)
    blocks.block_thread()
