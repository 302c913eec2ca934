/* What is told of those that we pull from: INFO, ROLE, and whether enough of them are there. */
#include "active/active.h"
#include "active/peer_links_priv.h"
#include "engine/gate.h"
#include "repl/follow.h"
#include "repl/replica.h"

#include <inttypes.h>
#include <stdio.h>

static int count_links(bool connected)
{
    int count = 0;
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        const struct peer_link *l = peer_link_at(i);
        count += l && (!connected || l->state == LINK_CONNECTED);
    }
    return count;
}

int peer_links_count(void)
{
    return count_links(false);
}

bool peer_links_bring_data(void)
{
    bool brings = false;
    for (int i = 0; i < PEER_LINKS_MAX && !brings; i++) {
        const struct peer_link *l = peer_link_at(i);
        brings = l && l->state == LINK_SYNC;
    }
    return brings;
}

/* KeyDB's replica-quorum: so many of them must be there; -1: all. */
static bool is_stale(void)
{
    int64_t quorum = follow_settings.quorum;
    return count_links(true) < (quorum < 0 ? count_links(false) : quorum);
}

void peer_links_judge_stale(void)
{
    bool alone = !active_is_on() || count_links(false) == 0;
    gate_set(GATE_STALE, !alone && !follow_settings.serve_stale && is_stale());
}

static void write_link(const struct peer_link *l, int number, struct buf *out)
{
    char prefix[24] = "master";
    bool up = l->state == LINK_CONNECTED;
    int64_t now_ms = replica_clock_ms(), heard_ms = l->heard_ms, down_ms = l->down_ms;
    if (number > 0) {
        snprintf(prefix, sizeof(prefix), "master_%d", number);
    }
    buf_printf(out,
               "%s_host:%s\r\n%s_port:%d\r\n%s_link_status:%s\r\n"
               "%s_last_io_seconds_ago:%" PRId64 "\r\n%s_sync_in_progress:%d\r\n"
               "slave_repl_offset:%" PRIu64 "\r\n",
               prefix, l->host, prefix, l->port, prefix, up ? "up" : "down", prefix,
               up ? (now_ms - heard_ms) / 1000 : -1, prefix, l->state == LINK_SYNC,
               (uint64_t)l->units);
    if (!up) {
        buf_printf(out, "%s_link_down_since_seconds:%" PRId64 "\r\n", prefix,
                   down_ms ? (now_ms - down_ms) / 1000 : -1);
    }
}

void peer_links_write_info(struct buf *out)
{
    if (count_links(false) == 0) {
        return;
    }
    struct peer_sync_facts f = peer_sync_facts();
    buf_printf(out,
               "active_sync_receiving:%d\r\nactive_sync_merging:%d\r\n"
               "active_sync_keys:%" PRIu64 "\r\nactive_sync_keys_merged:%" PRIu64 "\r\n",
               f.comes, f.merges, f.keys, f.merged);
    buf_printf(out, "master_global_link_status:%s\r\nconnected_masters:%d\r\n",
               is_stale() ? "down" : "up", count_links(true));
    for (int i = 0, number = 0; i < PEER_LINKS_MAX; i++) {
        const struct peer_link *l = peer_link_at(i);
        if (l) {
            write_link(l, number++, out);
        }
    }
    buf_printf(out, "slave_priority:%" PRId64 "\r\nslave_read_only:0\r\nreplica_announced:%d\r\n",
               follow_settings.priority, follow_settings.announced);
}

void peer_links_reply_roles(struct reply *r)
{
    static const char *const words[] = {"connect", "handshake", "sync", "connected", "connect"};
    for (int i = 0; i < PEER_LINKS_MAX; i++) {
        const struct peer_link *l = peer_link_at(i);
        if (l) {
            reply_array(r, 5);
            reply_bulk_cstr(r, "active-replica");
            reply_bulk_cstr(r, l->host);
            reply_i64(r, l->port);
            reply_bulk_cstr(r, words[l->state]);
            reply_i64(r, (int64_t)l->units);
        }
    }
}
