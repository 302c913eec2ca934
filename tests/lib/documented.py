"""Calls made from what COMMAND DOCS says of a command's arguments: no list of commands to keep, a
new command is tested by being documented."""

NUMBERS = {b"integer", b"double", b"unix-time"}

# What a text argument has to look like for the command to look further, by the argument's name.
TEXTS = {
    "encoding": "u8", "unit": "m", "id": "1-1", "start": "0", "end": "2", "min": "0", "max": "5",
    "group": "g", "consumer": "c", "min-idle-time": "0", "type": "list", "member": "a",
    "member1": "a", "member2": "b", "field": "a", "element": "a", "value": "5", "pattern": "*",
    "threshold": "1", "lastid": "0-1", "last-id": "1-1", "timeout": "0.01", "path": "k.a.b",
    "iterations": "1", "new_id": "2-2", "new-id": "2-2",
}


_LEX = {"min": "-", "max": "+", "start": "-", "stop": "+"}
# The same for single commands.
TEXTS_OF = {
    "SETBIT": {"value": "1"}, "BITPOS": {"bit": "1"}, "PFDEBUG": {"subcommand": "ENCODING"},
    "EXPIREMEMBER": {"delta": "100"}, "XCLAIM": {"ID": "1-1"}, "KEYDB.XPEND": {"ID": "1-1"}, "ZLEXCOUNT": _LEX,
    "ZRANGEBYLEX": _LEX, "ZREMRANGEBYLEX": _LEX, "ZREVRANGEBYLEX": {"min": "-", "max": "+"},
    "XREAD": {"ID": "0"}, "XREADGROUP": {"ID": "0"}, "XRANGE": {"start": "-", "end": "+"},
    "XREVRANGE": {"start": "-", "end": "+"},
}


class Place:
    """An argument that a test may put its own values into."""

    def __init__(self, command, name, kind):
        self.command, self.name, self.kind = command, name, kind

    def usual(self):
        own = TEXTS_OF.get(self.command, {})
        if self.name in own:
            return own[self.name]
        return "1" if self.kind in NUMBERS else TEXTS.get(self.name, "a")


def as_map(flat):
    return flat if isinstance(flat, dict) else dict(zip(flat[0::2], flat[1::2]))


def documents(client):
    """name -> its DOCS, subcommands among them as "XGROUP|CREATE"."""
    found = {}

    def collect(flat):
        for name, fields in as_map(flat).items():
            fields = as_map(fields)
            found[name.decode().upper()] = fields
            collect(fields.get(b"subcommands", []))

    collect(client.call("COMMAND", "DOCS"))
    return found


def _argument(argument, chance, keys, call, times=1):
    """The argument, with its token where it has one (before each repetition where flagged so)."""
    kind, token = argument[b"type"], argument.get(b"token", b"").decode().replace('"', "")
    for turn in range(times):
        if token and (turn == 0 or b"multiple_token" in argument.get(b"flags", ())):
            call.append(token)
        if kind == b"oneof":
            _argument(as_map(chance.choice(argument[b"arguments"])), chance, keys, call)
        elif kind == b"block":
            _all(argument[b"arguments"], chance, keys, call)
        elif kind == b"key":
            call.append(chance.choice(keys))
        elif kind != b"pure-token":
            call.append(Place(call[0], argument[b"name"].decode(), kind))


def _all(arguments, chance, keys, call):
    for argument in map(as_map, arguments):
        flags = argument.get(b"flags", ())
        if b"optional" not in flags or chance.random() < 0.5:
            times = chance.choice([1, 1, 2, 3]) if b"multiple" in flags else 1
            _argument(argument, chance, keys, call, times)


def make_call(name, fields, chance, keys=("k", "k", "other")):
    """Words and Places of one call; optional arguments, alternatives, repetitions and keys by
    chance."""
    call = name.split("|")
    _all(fields.get(b"arguments", []), chance, keys, call)
    return call


def fill(call, values=None):
    """The words; values: place's number in the call -> text."""
    words = []
    for number, word in enumerate(call):
        if isinstance(word, Place):
            word = (values or {}).get(number, word.usual())
        words.append(word)
    return words


def places(call):
    return [n for n, word in enumerate(call) if isinstance(word, Place)]
