"""All that a server holds, in a form in which two servers, or one before and after a restart, are
compared: what DEBUG DIGEST says, and what it does not see: when keys and members expire."""

MEMBERS = {b"hash": ("HKEYS",), b"set": ("SMEMBERS",), b"zset": ("ZRANGE", "0", "-1")}


def _deadlines(client, kind, key):
    members = client.call(MEMBERS[kind][0], key, *MEMBERS[kind][1:])
    found = {}
    for member in members:
        ttl = client.call("PTTL", key, member)
        if isinstance(ttl, int) and ttl >= 0:
            found[member] = ttl
    return found


def content(client, databases=16):
    """{(db, key): (digest, type, expiry)} of all keys."""
    found = {}
    for db in range(databases):
        client.ok("SELECT", str(db))
        for key in client.call("KEYS", "*"):
            digest = client.call("DEBUG", "DIGEST-VALUE", key)[0]
            found[(db, key)] = (digest, client.call("TYPE", key), client.call("PEXPIRETIME", key))
    client.ok("SELECT", "0")
    return found


def drop_dying(client, within_ms=60000, databases=16):
    """Deletes what may end while a test compares."""
    for db in range(databases):
        client.ok("SELECT", str(db))
        for key in client.call("KEYS", "*"):
            kind, ttl = client.call("TYPE", key), client.call("PTTL", key)
            ends = _deadlines(client, kind, key).values() if kind in MEMBERS else ()
            if 0 <= ttl < within_ms or any(end < within_ms for end in ends):
                client.call("DEL", key)
    client.ok("SELECT", "0")


def deadlines(client, databases=16):
    """{(db, key, member)} of those that have a deadline, which is some time away."""
    found = set()
    for db in range(databases):
        client.ok("SELECT", str(db))
        for key in client.call("KEYS", "*"):
            kind = client.call("TYPE", key)
            if kind in MEMBERS:
                found |= {(db, key, member) for member in _deadlines(client, kind, key)}
    client.ok("SELECT", "0")
    return found
