/* What replication asks of an active replica (repl/peers.h), answered. */
#include "active/active.h"
#include "active/peer_feed.h"
#include "active/peer_links.h"
#include "base/num.h"
#include "repl/peers.h"

#include <inttypes.h>
#include <string.h>

static bool is_wanted(void)
{
    return active_settings.on;
}

/* ---- whom it pulls from ---- */

static void change_links(struct call *c, struct slice host, int port, bool removes) REQUIRES(gil);
static void change_links(struct call *c, struct slice host, int port, bool removes)
{
    const char *error = NULL;
    if (removes && !peer_links_remove(host, port)) {
        reply_error(c->reply, "ERR Master not found");
    } else if (removes || peer_links_add(host, port, &error)) {
        reply_ok(c->reply);
    } else if (error) {
        reply_error(c->reply, error);
    } else {
        reply_status(c->reply, "OK Already connected to specified master");
    }
}

/* REPLICAOF [REMOVE] host port, REPLICAOF NO ONE. */
static void replicaof(struct call *c) REQUIRES(gil);
static void replicaof(struct call *c)
{
    int64_t port;
    bool removes = c->argc == 4;
    if (c->argc == 3 && call_arg_is(c, 1, "no") && call_arg_is(c, 2, "one")) {
        peer_links_remove_all();
        reply_ok(c->reply);
        return;
    }
    if (removes && !call_arg_is(c, 1, "remove")) {
        reply_syntax_error(c->reply);
        return;
    }
    struct slice host = c->argv[c->argc - 2];
    if (!num_parse_i64(c->argv[c->argc - 1], &port) || port < 0 || port > 65535) {
        reply_error(c->reply, "ERR Invalid master port");
    } else if (host.len == 0 || host.len > 255 || memchr(host.ptr, '\0', host.len)) {
        reply_error(c->reply, "ERR Invalid master host");
    } else {
        change_links(c, host, (int)port, removes);
    }
}

/* Of one server that it pulls from as a replica's, of several one each. */
static bool reply_role(struct call *c) REQUIRES(gil);
static bool reply_role(struct call *c)
{
    int count = peer_links_count();
    if (count > 1) {
        reply_array(c->reply, (uint64_t)count);
    }
    peer_links_reply_roles(c->reply);
    return count > 0;
}

/* ---- INFO ---- */

static void write_role(struct buf *out)
{
    buf_append_cstr(out, "role:active-replica\r\n");
    if (active_is_on()) { /* it has been loaded */
        peer_links_write_info(out);
        active_write_info(out);
    }
}

struct listing {
    struct buf *out;
    int number;
    int64_t now_ms;
};

static void write_peer(const struct peer_feed_facts *f, void *context)
{
    struct listing *l = context;
    buf_printf(l->out, "slave%d:ip=%s,port=%" PRId64 ",state=online,offset=0,lag=%" PRId64 "\r\n",
               l->number++, f->ip, f->port, (l->now_ms - f->heard_ms) / 1000);
}

static void write_all(struct buf *out, int first, int64_t now_ms)
{
    peer_feeds_each(write_peer, &(struct listing){out, first, now_ms});
}

/* ---- WAIT ---- */

static uint64_t last_write(void) REQUIRES(keyspace_lock);
static uint64_t last_write(void)
{
    return local_writes_last(node_own(active_node()));
}

static const struct peers_ops ops = {
    .wanted = is_wanted,
    .on = active_is_on,
    .configure = peer_links_configure,
    .put_lines = peer_links_put_lines,
    .replicaof = replicaof,
    .reply_role = reply_role,
    .look = peer_links_look,
    .cut = peer_links_cut,
    .write_role = write_role,
    .count = peer_feeds_count,
    .heard_since = peer_feeds_heard_since,
    .write_all = write_all,
    .is_peer = peer_feed_is,
    .hear = peer_feed_hear,
    .last_write = last_write,
    .with = peer_feeds_with,
    .ask = peer_feeds_ask,
    .judge_stale = peer_links_judge_stale,
};

void active_register(void)
{
    peers = &ops;
    command_register(active_commands);
}
