"""Only a page of this server may ask this server."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.middleware import Middleware
    from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = ['127.0.0.1', 'localhost']


class SameSite:
    """Refuses what a page of another site asks: a browser says in ``Origin`` which page that is.

    Gradio only keeps its answers from such a page. A picture that the page posts would be read all the same.
    """

    def __init__(self, app: 'ASGIApp') -> None:
        self.app = app

    async def __call__(self, scope: 'Scope', receive: 'Receive', send: 'Send') -> None:
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse
        answer = self.app
        if scope['type'] in ('http', 'websocket'):
            headers = Headers(scope=scope)
            if headers.get('origin') not in (None, f'http://{headers.get("host")}'):
                answer = PlainTextResponse('A page of another site asks this server, which answers its own.', 403)
        await answer(scope, receive, send)


def guards() -> 'list[Middleware]':
    """What stands before a server on this machine: the name that it was asked by, then the page that asks.

    A site whose name is made to point at this machine (DNS rebinding) is not one of :data:`HOSTS`.
    """
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    return [Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False), Middleware(SameSite)]
