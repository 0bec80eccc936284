"""Which sites may send requests to the page."""

import asyncio
import signal

import pytest

from vit_plugin.report.page import browser
from vit_plugin.report.page.same_site import guards

pytest.importorskip('starlette')
HERE = '127.0.0.1:7860'


def status_of(host: str, origin: str | None) -> int:
    """The status of a server with the guards; 200 if they let the request through."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount

    sent: list[dict] = []

    async def send(message: dict) -> None:
        sent.append(message)

    async def receive() -> dict:
        return dict(type='http.request', body=b'')

    headers = [
        (name.encode(), value.encode())
        for name, value in dict(host=host, origin=origin).items()
        if value
    ]
    app = Starlette(routes=[Mount('/', PlainTextResponse('yes'))], middleware=guards())
    request = dict(
        type='http', method='POST', path='/upload', headers=headers, query_string=b'', root_path=''
    )
    asyncio.run(app(request, receive, send))
    return sent[0]['status']


@pytest.mark.parametrize(
    ('host', 'origin', 'status'),
    [
        (HERE, None, 200),
        (HERE, f'http://{HERE}', 200),
        ('localhost:9', 'http://localhost:9', 200),  # through a tunnel
        ('rebound.example:7860', None, 400),
        ('rebound.example:7860', 'http://rebound.example:7860', 400),
        (HERE, 'http://other.example', 403),
        (HERE, 'null', 403),
        (HERE, 'http://localhost:7860', 403),
        (HERE, f'https://{HERE}', 403),
    ],
)
def test_only_the_page_itself_may_send_requests(host, origin, status):
    assert status_of(host, origin) == status


def test_the_page_is_served_with_guards_and_an_upload_limit(monkeypatch):
    pytest.importorskip('gradio')
    arguments = {}
    closed = False

    class Blocks:
        def launch(self, **kwargs):
            arguments.update(kwargs)
            return None, 'http://127.0.0.1:1', None

        def close(self, verbose):
            nonlocal closed
            closed = True

    monkeypatch.setattr(browser.Event, 'wait', lambda self: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        browser.serve(Blocks(), 1)
    assert closed
    assert arguments['server_name'] == '127.0.0.1'
    assert arguments['max_file_size'] == 64_000_000  # Gradio's '64mb' is 67,108,864
    assert [guard.cls.__name__ for guard in arguments['app_kwargs']['middleware']] == [
        'TrustedHostMiddleware',
        'SameOrigin',
    ]
