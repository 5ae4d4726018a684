"""A Django site that answers with the method and the path as its views see them."""

from wsgiref.simple_server import WSGIRequestHandler, make_server

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import re_path

settings.configure(SECRET_KEY="none", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])


def view(request):
    return HttpResponse(f"{request.method} {request.path}")


urlpatterns = [re_path("", view)]


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
