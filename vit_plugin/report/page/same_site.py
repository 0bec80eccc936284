"""Guard a local server against requests from other sites."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.middleware import Middleware
    from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = ['127.0.0.1', 'localhost']


class SameOrigin:
    """Refuses cross-origin requests, by the header ``Origin`` that a browser sends.

    Gradio alone would process a picture that another site posts, and only withhold the answer.
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
                answer = PlainTextResponse('Cross-origin request refused.', 403)
        await answer(scope, receive, send)


def guards() -> 'list[Middleware]':
    """Middleware that checks the host name of a request and the origin of the page that sends it.

    The host name stops DNS rebinding, where the name of a foreign site resolves to this machine:
    that name is not in :data:`HOSTS`.
    """
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    # In this order: the origin is compared with a host name that has been checked.
    this_host = Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False)
    return [this_host, Middleware(SameOrigin)]
