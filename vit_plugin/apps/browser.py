"""A page in the browser: drop a picture, see the likeliest classes and what the model sees in it."""

from typing import TYPE_CHECKING

import numpy as np

from vit_plugin.errors import ConfigError, MissingExtraError, needed_by
from vit_plugin.models.loading import find_backbone
from vit_plugin.visualization.attention_maps import observing
from vit_plugin.visualization.pictures import PER_IMAGE, PreparedImage
from vit_plugin.visualization.style import as_pixels

from .subject import Subject

if TYPE_CHECKING:
    import gradio

NUM_TOP = 5  # classes that are shown
LONGEST = 10  # sides of a picture; the weights of attention grow with the square of this
OF_A_BLOCK = ('attention', 'rollout')
TITLES = {'attention': 'Attention of the class token', 'rollout': 'Attention rolled out through the blocks',
          'features': 'Features as colours', 'cam': 'What speaks for the likeliest class'}


def likeliest(subject: Subject, seen: PreparedImage, count: int = NUM_TOP) -> dict[str, float]:
    """The likeliest classes and their scores, best first.

    A class without a name is its number. If several classes have one name, the number follows it.

    Raises:
        ConfigError: if the model is no classifier.
    """
    model, classes = subject.model, subject.classes
    if not hasattr(model, 'head') or not hasattr(model, 'predict'):
        raise ConfigError('There are no classes to show, since this model has no classifier with known names of '
                          'classes; give --config with the config of a classifier.')
    with observing(model):
        scores = model.predict(seen.inputs)[0].pred_score
    best, labels = scores.topk(min(count, len(scores)))

    def name(label: int) -> str:
        if label >= len(classes):
            return str(label)
        return classes[label] if classes.count(classes[label]) == 1 else f'{classes[label]} ({label})'

    return {name(label): score for label, score in zip(labels.tolist(), best.tolist(), strict=True)}


def drawn(subject: Subject, seen: PreparedImage, block: int = -1) -> dict[str, np.ndarray | str]:
    """Every picture of :data:`~vit_plugin.visualization.pictures.PER_IMAGE`, by its name.

    Args:
        subject: the model.
        seen: the image.
        block: the block for attention and rollout.

    Returns:
        The pixels (H, W, 3) of a picture, or the sentence why this model has none.
    """
    found: dict[str, np.ndarray | str] = {}
    for name, draw in PER_IMAGE.items():
        options = dict(blocks=[block]) if name in OF_A_BLOCK else dict(
            classes=subject.classes) if name == 'cam' else {}
        try:
            found[name] = as_pixels(draw(subject.model, seen, **options))
        except (ConfigError, MissingExtraError) as error:
            found[name] = str(error)
    return found


def look(subject: Subject, path: str) -> PreparedImage:
    """An image file as the model gets it.

    Raises:
        ConfigError: if it cannot be read, or is too long for its weights of attention.
    """
    seen = subject.see(path)
    short, long = sorted(seen.covered)
    if long > LONGEST * short:
        raise ConfigError(f'One side of the picture is more than {LONGEST} times the other; crop it.')
    return seen


def page(subject: Subject, title: str) -> 'gradio.Blocks':
    """The page. It asks nothing of the network, and keeps the pictures for at most two hours.

    Raises:
        MissingExtraError: if Gradio is not installed.
    """
    with needed_by('vit-plugin demo'):
        import gradio as gr

    def answer(path: str | None, block: int) -> list:
        if path is None:
            return [gr.Label(None, visible=True), gr.Markdown(visible=False),
                    *(kind(None, visible=False) for _ in PER_IMAGE for kind in (gr.Markdown, gr.Image))]
        try:
            seen = look(subject, path)
        except ConfigError as error:
            raise gr.Error(str(error).replace(repr(path), 'that you gave'), print_exception=False) from None
        try:
            classes = [gr.Label(likeliest(subject, seen), visible=True), gr.Markdown(visible=False)]
        except ConfigError as error:
            classes = [gr.Label(visible=False), gr.Markdown(str(error), visible=True)]
        pictures = []
        for name, what in drawn(subject, seen, block).items():
            is_said = isinstance(what, str)
            pictures += [gr.Markdown(f'### {TITLES[name]}\n{what if is_said else ""}', visible=True),
                         gr.Image(None if is_said else what, visible=not is_said)]
        return classes + pictures

    last = find_backbone(subject.model)[1].num_layers - 1
    with gr.Blocks(title=title, analytics_enabled=False, delete_cache=(3600, 3600)) as blocks:
        gr.Markdown(f'# {title}')
        with gr.Row():
            with gr.Column(scale=2):
                picture = gr.Image(image_mode=None, label='Drop a picture', type='filepath')
                # Gradio would open the file first, with errors of its own. For a subclass it would write a stub file.
                picture.preprocess = lambda upload: upload and upload.path
                block = gr.Slider(0, last, last, step=1, label='Block of attention and rollout')
                shown = [gr.Label(label='Classes', num_top_classes=NUM_TOP), gr.Markdown(visible=False)]
            with gr.Column(scale=3):
                for name in PER_IMAGE:
                    shown += [gr.Markdown(visible=False),
                              gr.Image(format='png', interactive=False, visible=False, show_label=False,
                                       container=False, buttons=['fullscreen'], alt_text=TITLES[name])]
        gr.on([picture.change, block.release], answer, [picture, block], shown, api_name=False)
    return blocks.queue(default_concurrency_limit=1)


def serve(blocks: 'gradio.Blocks', port: int, share: bool = False) -> None:
    """Show a page at http://127.0.0.1:PORT until the process is interrupted.

    Args:
        blocks: see :func:`page`.
        port: the port.
        share: also open a public address, through Gradio's servers.

    Raises:
        ConfigError: if the port is taken.
    """
    import gradio as gr
    theme = gr.themes.Default(font=['system-ui', 'sans-serif'], font_mono=['monospace'])  # others come from the network
    try:
        _, local, public = blocks.launch(
            server_name='127.0.0.1', server_port=port, share=share, theme=theme, footer_links=[], run_history=False,
            ssr_mode=False, max_file_size='64mb', quiet=True, prevent_thread_lock=True)
    except OSError as error:
        raise ConfigError(f'--port {port} is taken by another program; give another.') from error
    if share and not public:
        blocks.close()
        raise ConfigError('--share: no public address could be had from Gradio; check the network, or leave it out.')
    print(f'The page is at {" and at ".join(filter(None, (local, public)))}. Ctrl-C ends it.', flush=True)
    blocks.block_thread()
