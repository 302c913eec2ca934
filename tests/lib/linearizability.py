"""Is a history of concurrent operations one that some order of them, one at a time, explains?

An operation was called at `call` and returned at `ret` (monotonic nanoseconds); it took effect
somewhere between.  An operation whose client never learned the outcome has ret = FOREVER and
result = UNKNOWN: it may have taken effect at any time after its call, or never.

search() is the depth-first search of Wing and Gong with the memory of Lowe: a state is the set of
operations placed so far and the value of the object, and no state is entered twice.  Histories are
given per key, so the set of operations in flight at once stays small.
"""

FOREVER = 1 << 62
UNKNOWN = object()


class Op:
    """One operation of a history."""

    __slots__ = ("client", "call", "ret", "name", "args", "result")

    def __init__(self, client, call, ret, name, args, result):
        assert call < ret
        self.client, self.call, self.ret = client, call, ret
        self.name, self.args, self.result = name, args, result

    def __repr__(self):
        result = "?" if self.result is UNKNOWN else repr(self.result)
        return "client %s [%d, %s] %s%r -> %s" % (
            self.client, self.call, "?" if self.ret == FOREVER else self.ret, self.name,
            tuple(self.args), result)


class NotLinearizable(AssertionError):
    """Holds the operations around the point that no order explains."""


def register(state, op):
    """A string key.  state: bytes or None.  Gives (allowed, next state)."""
    name, args = op.name, op.args
    if name == "GET":
        expected, after = state, state
    elif name == "SET":
        expected, after = b"OK", args[0]
    elif name == "GETSET":
        expected, after = state, args[0]
    elif name == "GETDEL":
        expected, after = state, None
    elif name == "DEL":
        expected, after = (0 if state is None else 1), None
    elif name == "SETNX":
        expected, after = (1, args[0]) if state is None else (0, state)
    else:
        raise ValueError(name)
    return op.result is UNKNOWN or op.result == expected, after


def counter(state, op):
    """An integer key.  state: int, or None where there is no key."""
    name, args = op.name, op.args
    number = state or 0
    if name == "GET":
        expected, after = (None if state is None else b"%d" % state), state
    elif name == "INCR":
        expected = after = number + 1
    elif name == "DECRBY":
        expected = after = number - args[0]
    elif name == "GETDEL":
        expected, after = (None if state is None else b"%d" % state), None
    else:
        raise ValueError(name)
    return op.result is UNKNOWN or op.result == expected, after


def search(ops, model, initial=None, limit=5_000_000):
    """Raise NotLinearizable unless some order explains ops.  Gives the number of steps.

    Candidates for the next place are the operations that were called before the earliest return
    of all that are not placed yet."""
    ops = sorted(ops, key=lambda op: (op.call, op.ret))
    count = len(ops)
    if not count:
        return 0
    following = list(range(1, count + 1)) + [0]   # doubly linked list of the unplaced, head at
    previous = list(range(-1, count)) + [count]   # index count
    following[count] = 0
    previous[0] = count
    following[count - 1] = count
    must = sum(1 for op in ops if op.ret != FOREVER)
    state, placed, done, steps, deepest = initial, 0, 0, 0, 0
    seen, path = set(), []
    at, bound = following[count], FOREVER + 1
    while True:
        steps += 1
        if steps > limit:
            raise RuntimeError("no decision within %d steps" % limit)
        if done == must:
            return steps
        advanced = False
        while at != count and ops[at].call <= bound:
            op = ops[at]
            allowed, after = model(state, op)
            if allowed:
                key = (placed | 1 << at, after)
                if key not in seen:
                    seen.add(key)
                    path.append((at, state, bound))
                    placed, state = key
                    done += op.ret != FOREVER
                    following[previous[at]] = following[at]
                    previous[following[at]] = previous[at]
                    deepest = max(deepest, len(path))
                    advanced = True
                    break
            bound = min(bound, op.ret)
            at = following[at]
        if not advanced:
            if not path:
                raise NotLinearizable(explain(ops, deepest))
            at, state, bound = path.pop()
            following[previous[at]] = at
            previous[following[at]] = at
            placed &= ~(1 << at)
            done -= ops[at].ret != FOREVER
            bound = min(bound, ops[at].ret)
            at = following[at]
            continue
        at, bound = following[count], FOREVER + 1


def explain(ops, deepest):
    first = max(deepest - 6, 0)
    shown = "\n".join("  %r" % op for op in ops[first:deepest + 10])
    return "no order explains the history; at most %d of %d operations fit.  Around there:\n%s" % (
        deepest, len(ops), shown)


def check_keys(history, model):
    """history: iterable of (key, Op).  Keys are independent, so each is searched alone."""
    keys = {}
    for key, op in history:
        keys.setdefault(key, []).append(op)
    steps = 0
    for key, ops in sorted(keys.items()):
        try:
            steps += search(ops, model)
        except NotLinearizable as failure:
            raise NotLinearizable("key %r: %s" % (key, failure)) from None
    return steps


def check_increments(ops):
    """A history of INCR and GET alone, from no key: linear time instead of a search.

    The replies of INCR are the places of the order, so they must be distinct and without a gap
    (when none is unknown), and real time must agree: what returned before another was called has
    the smaller number.  A GET reads the number of an INCR, between that one and the next."""
    known = [op for op in ops if op.result is not UNKNOWN]
    unknown = sum(1 for op in ops if op.result is UNKNOWN and op.name == "INCR")
    replies = sorted(op.result for op in known if op.name == "INCR")
    if len(set(replies)) != len(replies):
        twice = sorted({r for r, s in zip(replies, replies[1:]) if r == s})
        raise NotLinearizable("INCR gave the same number twice: %r" % twice[:10])
    if replies and (replies[0] < 1 or replies[-1] > len(replies) + unknown):
        raise NotLinearizable("INCR gave %d..%d for %d calls (%d without reply)"
                              % (replies[0], replies[-1], len(replies), unknown))

    def place(op):
        return 2 * op.result if op.name == "INCR" else 2 * int(op.result or 0) + 1

    # An increment needs a strictly larger place than anything that returned before it was called;
    # a read one at least as large.
    events = sorted([(op.call, 1, op) for op in known] + [(op.ret, 0, op) for op in known],
                    key=lambda event: event[:2])
    highest, who = -1, None
    for _, is_call, op in events:
        if is_call:
            if place(op) < highest:
                raise NotLinearizable("%r is behind %r, which had returned" % (op, who))
        elif place(op) > highest:
            highest, who = place(op), op
