# The view of the document, read from stdin, in Django: the responses to user 42 and to a visitor.
import json, sys
import django
from django.conf import settings

settings.configure(INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"])
django.setup()

from django.contrib.auth.models import AnonymousUser, User
from django.test import RequestFactory

exec(sys.stdin.read())


def answer(user):
    request = RequestFactory().get("/push-token")
    request.user = user
    response = push_token(request)
    headers = {name.lower(): value for name, value in response.items()}
    return {"status": response.status_code, "headers": headers, "body": response.content.decode()}


print(json.dumps([answer(User(pk=42)), answer(AnonymousUser())]))
