"""A Django site of one page, as an ASGI and as a WSGI application."""

import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import path


def hello(request):
    return HttpResponse("hello")


urlpatterns = [path("hello/", hello)]


def _configure():
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="for tests")
        django.setup()


def asgi_application():
    _configure()
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


def wsgi_application():
    _configure()
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()
