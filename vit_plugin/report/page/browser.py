"""The page of ``vit-plugin demo``: drop a picture, see the prediction and what the model sees.

It is made with Gradio. A function that returns components is called twice: empty, to lay out the
page, and filled, to update it, since Gradio takes a new component as the new state of the old one.
"""

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from mmengine.registry import DATASETS

from anyfolder.sampling import evenly_spaced
from vit_plugin.config.scope import in_scope
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.files.untrusted_text import as_html, escape_markdown
from vit_plugin.inference import SCORE_THR
from vit_plugin.inference.predictions import NUM_TOP
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.loading import find_backbone

from ..pictures.pictures import supported_pictures
from .page_sections import (
    FOUND,
    PAGE_SECTIONS,
    PageAnswer,
    answer_picture,
    describe_model,
    has_answer,
)
from .same_site import guards

if TYPE_CHECKING:
    import gradio

NUM_EXAMPLES = 3  # test images that the page offers
# Limit of an upload in bytes. The image reader limits the pixels.
MAX_UPLOAD_BYTES = 64_000_000
PICTURE_HEIGHT = 420  # height of the picture's frame, in pixels
PAGE_CSS = '.gradio-container {max-width: 1100px !important; margin: 0 auto}'
PRIVACY_NOTE = 'A picture stays on this machine, and is deleted after at most two hours.'


def find_examples(trained: TrainedModel) -> list[str]:
    """Paths of a few of the model's test images, if they are on this machine.

    A config from a checkpoint has no data, and so no examples.
    """
    dataset = (trained.cfg.get('test_dataloader') or {}).get('dataset') or {}
    if not dataset.keys() & {'data_root', 'data_prefix', 'ann_file'}:
        return []
    try:
        with in_scope(trained.cfg.default_scope):
            data = DATASETS.build(dataset)
        infos = [data.get_data_info(i) for i in evenly_spaced(len(data), NUM_EXAMPLES)]
    except Exception:  # noqa: BLE001  a data set of another machine, or one without paths
        return []
    paths = [info.get('img_path') for info in infos]
    return [path for path in paths if path and Path(path).is_file()]


def build_page(
    trained: TrainedModel, title: str, size: int | None = None, images: Sequence[str] = ()
) -> 'gradio.Blocks':
    """Build the page. It makes no network requests; uploads are deleted after at most two hours.

    Args:
        trained: the model.
        title: title of the page.
        size: shorter side of the pictures of what the model sees, in pixels.
        images: files to offer as examples. Default: some of the model's test data.

    Raises:
        MissingExtraError: if Gradio is not installed.
    """
    with needed_by('vit-plugin demo'):
        import gradio as gr

    # Every hour, Gradio deletes uploads that are older than an hour.
    with gr.Blocks(title=title, analytics_enabled=False, delete_cache=(3600, 3600)) as blocks:
        markdown_text(f'# {escape_markdown(title)}\n{describe_model(trained)} {PRIVACY_NOTE}')
        picture, sliders = add_picture_input(images or find_examples(trained)), []
        if trained.prediction_class.has_threshold:
            sliders.append(
                gr.Slider(minimum=0, maximum=1, value=SCORE_THR, label='Lowest score of a box')
            )
        outputs = prediction_outputs(trained)
        # The page shows components in the order of their creation: this slider is below the
        # prediction. It comes first in the arguments of `answer`, since every model has it.
        sliders.insert(0, add_block_slider(trained))
        outputs += section_outputs(supported_pictures(trained.model))

    def answer(path: str | None, block: int, score_thr: float = SCORE_THR) -> list:
        if path is None:  # the picture was removed
            return [gr.skip()] * len(outputs)
        try:
            page_answer = answer_picture(trained, path, block, score_thr, size)
        except ConfigError as error:
            # The path is that of a temporary copy, which says nothing to the user.
            sentence = str(error).replace(repr(path), 'that you gave')
            raise gr.Error(as_html(sentence), print_exception=False) from None
        return prediction_outputs(trained, page_answer) + section_outputs(
            supported_pictures(trained.model), page_answer
        )

    with blocks:
        triggers = [picture.change, *(slider.release for slider in sliders)]
        gr.on(triggers, answer, [picture, *sliders], outputs, api_name=False)
    return blocks.queue(default_concurrency_limit=1)


def add_picture_input(images: Sequence[str]) -> 'gradio.Image':
    """The input for a picture, with example images below it."""
    import gradio as gr

    picture = gr.Image(image_mode=None, label='A picture', type='filepath', height=PICTURE_HEIGHT)
    # Otherwise Gradio opens the file first, with its own errors. The method is replaced on the
    # instance, since Gradio would write a stub file for a subclass.
    picture.preprocess = lambda upload: upload and upload.path
    if images:
        gr.Examples([*images], picture, label='From its test images', cache_examples=False)
    return picture


def add_block_slider(trained: TrainedModel) -> 'gradio.Slider':
    """The slider for the block whose attention and rollout are drawn."""
    import gradio as gr

    count = find_backbone(trained.model)[1].num_layers
    return gr.Slider(
        minimum=1, maximum=count, value=count, step=1, label='Block of attention and rollout'
    )


def prediction_outputs(trained: TrainedModel, page_answer: PageAnswer | None = None) -> list[Any]:
    """The outputs for the prediction, filled for a picture or empty."""
    import gradio as gr

    if not has_answer(trained):
        return []
    if not trained.prediction_class.lists_classes:
        return section_outputs([FOUND], page_answer)
    scores = page_answer and page_answer.scores
    return [gr.Label(scores, label='Most probable classes', num_top_classes=NUM_TOP)]


def markdown_text(text: str) -> 'gradio.Markdown':
    """A Markdown text that does not render names as formulas."""
    import gradio as gr

    return gr.Markdown(text, latex_delimiters=[])


def section_outputs(names: Sequence[str], page_answer: PageAnswer | None = None) -> list[Any]:
    """A text and an output picture for each section, filled for a picture or empty."""
    import gradio as gr

    outputs: list[Any] = []
    for name in names:
        title, caption = PAGE_SECTIONS[name]
        picture = page_answer and page_answer.pictures[name]
        if isinstance(picture, str):
            picture, caption = None, escape_markdown(picture)
        elif page_answer and name == FOUND:
            caption = f'{escape_markdown(page_answer.text)}.'
        outputs += [
            markdown_text(f'### {title}\n{caption}'),
            gr.Image(
                picture,
                format='png',
                interactive=False,
                visible=picture is not None,
                show_label=False,
                container=False,
                buttons=['fullscreen'],
                alt_text=title,
            ),
        ]
    return outputs


def serve(blocks: 'gradio.Blocks', port: int) -> None:
    """Show a :func:`build_page` at http://127.0.0.1:PORT until interrupted.

    Requests from other sites are refused.

    Raises:
        ConfigError: if the port is taken.
    """
    import gradio as gr

    # The fonts of Gradio's default theme would be downloaded.
    theme = gr.themes.Default(font=['system-ui', 'sans-serif'], font_mono=['monospace'])
    try:
        _, url, _ = blocks.launch(
            server_name='127.0.0.1',
            server_port=port,
            theme=theme,
            css=PAGE_CSS,
            footer_links=[],
            run_history=False,
            ssr_mode=False,
            max_file_size=MAX_UPLOAD_BYTES,
            app_kwargs=dict(middleware=guards()),
            quiet=True,
            prevent_thread_lock=True,
        )
    except OSError as error:
        raise ConfigError(f'--port {port} is taken by another program; give another.') from error
    print(f'The page is at {url}. Ctrl-C ends it.', flush=True)
    try:
        Event().wait()
    finally:
        blocks.close(verbose=False)
