# Checked and run beside the client that openapi-python-client makes of the description.
from made.models.broadcast import Broadcast
from made.models.declarative_push import DeclarativePush
from made.models.declarative_push_web_push import DeclarativePushWebPush
from made.models.error_429_error_code import Error429ErrorCode
from made.models.notification import Notification
from made.models.post_channel_body import PostChannelBody

push = DeclarativePush(
    web_push=DeclarativePushWebPush.VALUE_8030,
    notification=Notification(title="Hello", navigate="https://example.org/"),
)
body = PostChannelBody(data=push, rate=10)
assert body.to_dict() == {
    "data": {
        "web_push": 8030,
        "notification": {"title": "Hello", "navigate": "https://example.org/"},
    },
    "rate": 10,
}


def left(broadcast: Broadcast) -> int:
    return broadcast.accepted - broadcast.delivered


# mypy fails where one of these is no error.
PostChannelBody(rate="ten")  # type: ignore[arg-type]
assert Error429ErrorCode("too-many-new-users") is Error429ErrorCode.TOO_MANY_NEW_USERS
