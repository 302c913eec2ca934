/* What a server that is an active replica (src/active/, a layer above) answers in place of a plain
 * primary or replica, or beside it: a table that it gives at boot. Without one every question is
 * answered as a server answers that is none. State: the table is immutable after boot. */
#ifndef REPL_PEERS_H
#define REPL_PEERS_H

#include "base/buf.h"
#include "engine/call.h"
#include "engine/gil.h"
#include "net/client.h"
#include "net/upstream.h"

struct peers_ops {
    /* Whether the configuration makes it one; and whether it is one yet, its data being loaded:
     * what is below is asked only then, if it says nothing else. */
    bool (*wanted)(void);
    bool (*on)(void);

    /* A line of `replicaof` (no one: host.ptr NULL); false: there are too many. Any server, boot.
     */
    bool (*configure)(struct slice host, int port);
    /* CONFIG REWRITE: appends lines for whom it pulls from now; false when those of the files still
     * say it. `in_include`: first one that takes back those of included files. Any server, world.
     */
    bool (*put_lines)(bool in_include, struct buf *out);
    /* REPLICAOF, ROLE (as a replica; false: as a primary), CLIENT's primary (net/upstream.h).
     * World. */
    void (*replicaof)(struct call *c);
    bool (*reply_role)(struct call *c);
    bool (*look)(struct upstream *facts);
    void (*cut)(void);

    /* INFO's lines of the role; how many servers pull from this one, how many of them were heard
     * since then (monotonic milliseconds), and their lines, numbered from `first` on. The GIL is
     * held in some mode. */
    void (*write_role)(struct buf *out);
    int (*count)(void);
    int (*heard_since)(int64_t ms);
    void (*write_all)(struct buf *out, int first, int64_t now_ms);

    /* Whether a client is such a server; REPLCONF PULL-ACK of one (exclusive mode), false: it is
     * none. Any server.
     */
    bool (*is_peer)(const struct client *c);
    bool (*hear)(struct call *c);
    /* WAIT, exclusive mode: the number of the last write of ours; how many peers have applied all
     * up to a number; they are to say soon how far they are. */
    uint64_t (*last_write)(void);
    int (*with)(uint64_t sequence);
    void (*ask)(void);

    /* Settings of GATE_STALE have changed. The GIL is held. */
    void (*judge_stale)(void);
};

/* Never NULL. */
extern const struct peers_ops *peers;

#endif
