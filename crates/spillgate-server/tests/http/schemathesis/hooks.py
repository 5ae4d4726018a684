import schemathesis


@schemathesis.serializer("application/toml")
def toml(context, value):
    """A policy is sent as it is."""
    return str(value).encode()
