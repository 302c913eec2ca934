/* Waiting for keys, as handlers see it (BLPOP, XREAD BLOCK ...): blocking is data (DESIGN, 4). A
 * handler that cannot be served says what it waits for and returns without a reply. The call is
 * then parked, still in the same hold: a deep copy of the request takes its place in the queue of
 * each of its keys. When a writer has changed such a key, the handler is run again, on the writer's
 * thread, with the copy (c->retry is true then); once it replies, that is the command's reply. It
 * is never run again after that, so each waiter is served exactly once, and those of a key in the
 * order in which they came.
 *
 * How a handler goes about it:
 *
 *     parse the arguments, the time-out among them; on an error reply it
 *     if (there is something to reply) { reply it; return; }
 *     if (!call_may_block(c)) { reply what the command replies there; return; }
 *     call_block(c, &(struct block){.key_count = n, .type = VALUE_LIST, .timeout_ms = timeout_ms});
 *
 * The same code serves the retry, as in Redis 7.2: its keys are gone through from the first one,
 * and one of a wrong type is the error that it would be now. argv, keys, database, session and
 * reply->proto are those of the parked call, while now_ms is the writer's; what its user may do and
 * what may be written is looked at once more.
 *
 * A command that waits has CMD_BLOCKING (or CMD_WAITS_QUIETLY) in its row; its client's requests
 * behind it are looked at when it has its reply. State: none of its own; parked calls are keyspace
 * state (parked.h). */
#ifndef ENGINE_BLOCK_H
#define ENGINE_BLOCK_H

#include "engine/call.h"

/* What a call waits for. Zero is a good default for all but key_count and type. */
struct block {
    /* Waits at keys first_key .. first_key + key_count - 1 of the request (as call_key counts
     * them). A key named twice is one. At least one. */
    int first_key, key_count;
    enum value_type type; /* the call is tried again when a value of this type is at such a key */
    bool when_gone;       /* and also when the key is deleted or holds another type: for who must
                             be told of it (XREADGROUP: -NOGROUP, -WRONGTYPE) */
    bool stays;           /* CLIENT UNBLOCK leaves it waiting */
    int64_t timeout_ms;   /* 0: forever. From now on; on time-out the reply is a null array */
    /* A name that lives forever: the call waits for that event (call_event) instead of keys, and is
     * tried again whenever it happens. */
    struct slice event;
    /* Keys that are not the request's, instead of those: `key_count` of them. Their names live as
     * long as the state. Other nodes are not asked about them (active/delivery.h). */
    const struct key *keys;
    /* Replies what the command replies on time-out, instead of a null array. In exclusive mode, in
     * a call like that of a retry. */
    void (*on_timeout)(struct call *c);
    /* What the handler has found out and a retry must know (what $ meant in XREAD): heap memory
     * that call_block takes in any case, freed by destroy_state (NULL: mem_free). Not in a retry:
     * NULL there, the state of the first run stays. */
    void *state;
    void (*destroy_state)(void *state);
};

/* False for who must be answered at once: calls inside EXEC or a script, internal sessions. True in
 * a retry, and where the caller says so (call.awaited). */
bool call_may_block(const struct call *c);
/* Makes the call wait: the handler has replied nothing and returns right after. In a retry it goes
 * on waiting where it was, with its old time-out (only b->key_count may be looked at). Under the
 * lock in shared mode (a reading command: XREAD) nothing is parked yet: the call is run again from
 * its start in exclusive mode, as with call_need_exclusive; the handler need not care, and must not
 * have changed anything. A writing command may have, if that is to stand however the wait ends
 * (XREADGROUP makes its consumer). A world call waits for an event; its retries have the lock in
 * exclusive mode instead of the world. */
void call_block(struct call *c, const struct block *b) REQUIRES_SHARED(keyspace_lock);
/* The event has happened: calls that wait for it are tried again at the end of the hold. */
void call_event(struct slice event) REQUIRES(keyspace_lock);
/* The state of the first run; only in a retry. Borrowed; the handler may change what is in it. */
void *call_block_state(const struct call *c);

/* Argument `i` as a time-out in seconds (BLPOP: a decimal, rounded up to milliseconds) or in whole
 * milliseconds (XREAD BLOCK). False with the error replied: no number, negative, out of range. */
bool call_arg_timeout_s(struct call *c, int i, int64_t *timeout_ms) MUST_CHECK;
bool call_arg_timeout_ms(struct call *c, int i, int64_t *timeout_ms) MUST_CHECK;

#endif
