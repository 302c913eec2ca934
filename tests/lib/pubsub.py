"""Subscribers as tests see them: every frame in its order, pushes and replies alike."""

from lib.resp import Push

MESSAGES = (b"message", b"pmessage", b"smessage")
CONFIRMATIONS = (b"subscribe", b"psubscribe", b"ssubscribe", b"unsubscribe", b"punsubscribe",
                 b"sunsubscribe")


def is_message(tree):
    return isinstance(tree, list) and len(tree) in (3, 4) and tree[0] in MESSAGES


def is_confirmation(tree):
    return isinstance(tree, list) and len(tree) == 3 and tree[0] in CONFIRMATIONS


def frames(client, count):
    """The next frames of any kind."""
    return [client.read_frame()[1] for _ in range(count)]


def frame(client):
    return frames(client, 1)[0]


def subscribe(client, *words):
    """Send a command that confirms each of its names; gives the confirmations, and puts what
    came before them aside in client.pushes."""
    client.send(*words)
    found = []
    while len(found) < len(words) - 1:
        tree = frame(client)
        if is_confirmation(tree):
            assert isinstance(tree, Push) == (client.decoder.proto == 3)
            found.append(list(tree))
        else:
            client.pushes.append(tree)
    return found


def until_token(client, token):
    """Send PING token and give the frames before its answer, in whatever form it comes."""
    client.send("PING", token)
    found = []
    while True:
        tree = frame(client)
        if tree == token or tree == [b"pong", token]:
            return found
        found.append(tree)
