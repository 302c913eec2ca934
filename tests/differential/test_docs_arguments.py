"""COMMAND DOCS' argument trees: what command line clients make their hints from.  Both sides are
brought into one line a command: name:type, TOKEN= before it, #n for the key spec, ? optional,
+ multiple, ++ with its token, parts in brackets.  Names of choices and blocks are ours."""

import pytest

# Commands whose tree differs on purpose: ours, and why.
OURS = {
    "bitfield": "the notation takes what is called value for a string, whatever it holds",
    "acl|cat": "7.2 calls it a category",
    "bitop": "7.2 names the operations",
    "cluster|meet": "the bus port is spelled with dashes",
    "cluster|setslot": "7.2 names the arguments after what they are, and has TIMEOUT",
    "command|getkeys": "7.2 documents the arguments",
    "command|getkeysandflags": "7.2 documents the arguments",
    "config|get": "a value that is repeated, not a block of one",
    "migrate": "the notation has no token that is empty",
    "hscan": "NOVALUES is of 7.4",
    "geodist": "7.2 has the units in small letters",
    "geohash": "7.2: members are optional",
    "geopos": "7.2: members are optional",
    "georadius": "as geodist; 7.2 has STORE and STOREDIST as a choice",
    "georadiusbymember": "as georadius",
    "georadius_ro": "as geodist",
    "georadiusbymember_ro": "as geodist",
    "geosearch": "as geodist",
    "geosearchstore": "as geodist",
    "latency|histogram": "7.2 spells the argument in capitals",
    "lcs": "7.2 calls MINMATCHLEN's value min-match-len",
    "module|loadex": "ARGS is the token of a value, not of a block of one",
    "persist": "KeyDB's takes a member",
    "psubscribe": "7.2: a pattern that is repeated, not a block of one",
    "pttl": "KeyDB's takes a member",
    "ttl": "KeyDB's takes a member",
    "pfmerge": "7.2: the sources are optional",
    "setbit": "as bitfield",
    "shutdown": "7.2 tells that ABORT stands alone",
    "sort": "7.2 has names of their own for the patterns",
    "sort_ro": "as sort",
    "zincrby": "the increment is a double",
    "zrange": "start and stop have one type, by their names",
    "zrank": "7.2 takes WITHSCORE",
    "zrevrank": "7.2 takes WITHSCORE",
    "zscan": "takes NOSCORES",
    "xack": "7.2 spells the ID in capitals",
    "xclaim": "as xack, and LASTID's value is called lastid",
    "xdel": "as xack",
    "xgroup|create": "7.2 names groups and consumers without -name",
    "xgroup|createconsumer": "as xgroup|create",
    "xgroup|delconsumer": "as xgroup|create",
    "xgroup|destroy": "as xgroup|create",
    "xgroup|setid": "as xgroup|create",
    "xinfo|consumers": "as xgroup|create",
    "xinfo|stream": "FULL is a token of the block, not the block's",
    "xpending": "min-idle-time has one type, by its name: that of XCLAIM",
    "xread": "as xreadgroup",
    "xreadgroup": "the notation knows no block with a token outside brackets",
    "xsetid": "7.2 spells the numbers with dashes",
    "xtrim": "the notation knows no block without brackets",
    # COMMAND DOCS of 7.0 documents these less than 7.2 does.
    "client|kill": "7.2 has MAXAGE and the other filters",
    "failover": "our notation has no optional word inside TO's block: FORCE stands beside it",
    "client|list": "7.2 spells the classes without tokens in capitals",
}


def line(arguments):
    parts = []
    for argument in arguments:
        a = argument.as_dict()
        inner = b"arguments" in a
        kind = a[b"type"].decode()
        text = "_" if inner or kind == "pure-token" else a[b"name"].decode()
        if b"token" in a:
            text = a[b"token"].decode() + "=" + text
        text += ":" + kind
        if b"key_spec_index" in a:
            text += "#%d" % a[b"key_spec_index"]
        flags = a.get(b"flags", [])
        text += "?" * (b"optional" in flags) + "+" * (b"multiple" in flags)
        text += "+" * (b"multiple_token" in flags)
        if inner:
            text += "(%s)" % line(a[b"arguments"])
        parts.append(text)
    return " ".join(parts)


def trees(docs):
    found = {}
    for name, fields in docs:
        fields = fields.as_dict()
        found[name.decode()] = line(fields.get(b"arguments", []))
        found.update(trees(fields.get(b"subcommands", [])))
    return found


@pytest.mark.any_threads
def test_argument_trees(connect, oracle):
    ours = trees(connect(3).call("COMMAND", "DOCS"))
    with oracle.connect(3) as other:
        theirs = trees(other.call("COMMAND", "DOCS"))
    both = set(ours) & set(theirs)
    assert len(both) > 80
    different = {n: (ours[n], theirs[n]) for n in both if ours[n] != theirs[n] and n not in OURS}
    assert not different


@pytest.mark.any_threads
def test_display_text_is_the_name_of_each_value(connect, ours_only):
    """Since 7.2, and for values and tokens only."""
    def walk(arguments):
        for argument in arguments:
            a = argument.as_dict()
            if b"arguments" in a:
                assert b"display_text" not in a
                walk(a[b"arguments"])
            else:
                assert a[b"display_text"] == a[b"name"]

    for _, fields in connect(3).call("COMMAND", "DOCS"):
        walk(fields.get(b"arguments", []))
