"""Talks to a server as programs in Python do: redis_py.py PORT PROTOCOL PASSWORD."""

import sys
import threading

import redis
from redis.retry import Retry
from redis.backoff import NoBackoff

PORT, PROTOCOL, PASSWORD = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def connect(**options):
    options = {"password": PASSWORD, "protocol": PROTOCOL, **options}
    return redis.Redis(port=PORT, retry=Retry(NoBackoff(), 0), **options)


def key(name):
    return f"py:{PROTOCOL}:{name}"


def refuses(call, *words):
    try:
        call()
    except redis.RedisError as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"not refused: {words}")


client = connect()
assert client.ping() is True
assert client.echo("hé") == "hé".encode()
assert client.execute_command("CL.THROTTLE", key("a"), 15, 30, 60) == [0, 16, 15, -1, 2]
assert client.execute_command("CL.THROTTLE", b"\xff\x00\r\n" + key("a").encode(), 0, 1, 60)[0] == 0
assert client.execute_command("SG.CHECK", "api", "203.0.113.7", 0)[1] == 5
assert client.info("server")["redis_version"]
assert client.client_setname("py") and client.client_getname() in (b"py", "py")
assert client.client_id() > 0
assert "save" in client.config_get("*")
assert "cl.throttle" in client.command()

# An error is an exception, and the connection goes on.
refuses(lambda: client.execute_command("CL.THROTTLE", key("a"), -1, 30, 60), "max_burst")
refuses(lambda: client.execute_command("SG.CHECK", "nothing", "k"), "there is no limit")
refuses(lambda: client.get("k"), "unknown command")
refuses(lambda: connect(password="wrong").ping(), "invalid username-password")
assert client.ping() is True

# Pipelines: as transactions, which is what the library does unless told otherwise, and
# without. Both to the last token.
for transaction in (True, False):
    pipeline = client.pipeline(transaction=transaction)
    for _ in range(30):
        pipeline.execute_command("CL.THROTTLE", key(f"pipe{transaction}"), 9, 1, 86400)
    replies = pipeline.execute()
    assert [reply[0] for reply in replies] == [0] * 10 + [1] * 20, replies

# What is wrong in the middle does not hide the rest.
pipeline = client.pipeline(transaction=False)
pipeline.execute_command("CL.THROTTLE", key("mixed"), 9, 1, 60)
pipeline.execute_command("CL.THROTTLE", key("mixed"), "x", 1, 60)
pipeline.execute_command("CL.THROTTLE", key("mixed"), 9, 1, 60)
first, error, last = pipeline.execute(raise_on_error=False)
assert first[2] == 9 and last[2] == 8 and isinstance(error, redis.ResponseError), error

# A pool with health checks, shared by threads: exactly the burst passes.
pool = redis.ConnectionPool(
    port=PORT,
    password=PASSWORD,
    protocol=PROTOCOL,
    max_connections=8,
    health_check_interval=1,
    decode_responses=True,
    client_name="pool",
)
allowed = []


def work():
    mine = redis.Redis(connection_pool=pool)
    for _ in range(50):
        if mine.execute_command("CL.THROTTLE", key("pool"), 99, 1, 86400)[0] == 0:
            allowed.append(1)


threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(allowed) == 100, len(allowed)
client.close()
print("ok")
