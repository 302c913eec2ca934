"""What clients of active replicas wrote and were told, and what must be so of it at the end of a round.

A client writes elements that nobody else writes: members, fields, elements of lists and streams with a name of their own,
amounts added to a counter. So an element is there or not by what its one client did last, in the order of its replies:

* a write that was acknowledged counts; one whose reply did not come may count;
* what a node without a log wrote since its last file, before it was killed, may count or not: its peers had some of it;
* FLUSHALL takes away what its own node had written before, and anything of other nodes, or nothing.

Where all that is known a key has to hold exactly what was written, nothing that was deleted, and nothing twice. `shared` keys
are written by the clients of several nodes; beyond the logs they are decided whole (README.md), and then
nothing is asked of them but that all nodes have the same.
"""

import threading

DATABASE = 5


class Write:
    """One element of a key, of one client. `there`: what it does to it; `amount`: to a counter; `unit`: which transaction it
    is part of."""

    __slots__ = ("node", "kind", "key", "element", "there", "amount", "begun", "ended", "certain", "unit")

    def __init__(self, node, kind, key, element, there=True, amount=0, unit=None):
        self.node, self.kind, self.key, self.element = node, kind, key, element
        self.there, self.amount, self.unit = there, amount, unit
        self.begun = self.ended = None
        self.certain = True


class Ledger:
    def __init__(self):
        self.writes, self.flushes, self.clock, self.lock = [], [], 0, threading.Lock()

    def now(self):
        with self.lock:
            self.clock += 1
            return self.clock

    def begin(self, writes):
        with self.lock:
            self.clock += 1
            for write in writes:
                write.begun = self.clock
            self.writes += writes

    def end(self, writes, outcome):
        """"done", "refused" (it did nothing), or "unknown"."""
        with self.lock:
            self.clock += 1
            for write in writes:
                if outcome == "done":
                    write.ended = self.clock
                elif outcome == "unknown":
                    write.certain = False
                else:
                    self.writes.remove(write)

    def lost_since(self, node, when):
        """The node was killed, and its file is of that moment."""
        with self.lock:
            for write in self.writes:
                if write.node == node and (write.ended is None or write.ended > when):
                    write.certain = False
            for flush in self.flushes:
                if flush["node"] == node and flush["ended"] > when:
                    flush["certain"] = False

    def flush(self, node, begun, ended, certain):
        with self.lock:
            self.flushes.append({"node": node, "begun": begun, "ended": ended, "certain": certain})

    # -- at the end

    def _states(self, history):
        """What may be so of an element: a set of True and False."""
        events = [(w.begun, w.ended or w.begun, w.certain, w.there) for w in history]
        node = history[0].node
        possible = {False}
        flushes = []
        for flush in self.flushes:
            if flush["node"] == node:
                flushes.append((flush["begun"], flush["ended"], flush["certain"], False))
            else:
                return {True, False} if any(w.there for w in history) else {False}
        ordered = sorted(events + flushes)
        for at, (begun, _, certain, there) in enumerate(ordered):
            overlaps = any(other[0] < begun < other[1] for other in ordered[:at])
            if certain and not overlaps:
                possible = {there}
            else:
                possible = possible | {there}
        return possible

    def check(self, found, shared_exact, own_exact=True):
        """found: {key: {element: count}}, and for counters {key: {"": value}}. The list of what is wrong."""
        def is_exact(key):
            return shared_exact if key.startswith("shared") else own_exact
        wrong = []
        elements, counters = {}, {}
        for write in self.writes:
            if write.kind == "counter":
                counters.setdefault(write.key, []).append(write)
            elif write.kind != "queue":
                elements.setdefault((write.key, write.element), []).append(write)
        for (key, element), history in elements.items():
            count = found.get(key, {}).get(element, 0)
            if count > 1:
                wrong.append("%s has %s %d times" % (key, element, count))
            if not is_exact(key):
                continue
            possible = self._states(history)
            if (count > 0) not in possible:
                wrong.append("%s: %s is %s; node %d, %s" % (
                    key, element, "there and was deleted" if count else "lost", history[0].node,
                    ["%s%s %s-%s" % ("" if w.certain else "perhaps ", "put" if w.there else "deleted", w.begun, w.ended)
                     for w in history]))
        for key, known in found.items():
            for element in known:
                if element != "" and (key, element) not in elements:
                    wrong.append("%s: nobody wrote %s" % (key, element))
        for key, writes in counters.items():
            if not is_exact(key) or self.flushes:
                continue
            value = int(found.get(key, {}).get("", 0))
            least = sum(w.amount for w in writes if w.certain)
            most = sum(w.amount for w in writes)
            if not least <= value <= most:
                wrong.append("%s is %d, and should be %d to %d" % (key, value, least, most))
        return wrong + list(self._torn(found, shared_exact))

    def _torn(self, found, shared_exact):
        """Transactions that are there in part."""
        units = {}
        for write in self.writes:
            if write.unit is not None and write.kind != "counter":
                units.setdefault(write.unit, []).append(write)
        for unit, writes in units.items():
            if not shared_exact:
                continue  # keys are decided one by one then
            there = {found.get(w.key, {}).get(w.element, 0) > 0 for w in writes}
            if len(there) > 1:
                yield "the transaction %s is there in part: %s" % (unit, ["%s %s" % (w.key, w.element) for w in writes])

    def counts(self):
        return "%d writes, %d of them acknowledged and safe" % (
            len(self.writes), sum(w.certain for w in self.writes))


def contents(client):
    """What the keys of the ledger hold, as check() takes it."""
    found = {}
    client.ok("SELECT", DATABASE)
    for key in client.call("KEYS", "*"):
        kind, name = client.call("TYPE", key), key.decode()
        if name.startswith("queue") or name.startswith("soon"):
            continue
        if kind == b"string" and "register" in name:
            found[name] = {client.call("GET", key).partition(b" ")[0].decode(): 1}
        elif kind == b"string":
            found[name] = {"": client.call("GET", key).partition(b" ")[0].decode()}
        elif kind == b"list":
            found[name] = {}
            for element in client.call("LRANGE", key, 0, -1):
                found[name][element.decode()] = found[name].get(element.decode(), 0) + 1
        elif kind == b"stream":
            found[name] = {}
            for _, fields in client.call("XRANGE", key, "-", "+"):
                found[name][fields[1].decode()] = found[name].get(fields[1].decode(), 0) + 1
        else:
            words = {b"set": ("SMEMBERS",), b"hash": ("HKEYS",), b"zset": ("ZRANGE", 0, -1)}[kind]
            found[name] = {e.decode(): 1 for e in client.call(words[0], key, *words[1:])}
    client.ok("SELECT", 0)
    return found
