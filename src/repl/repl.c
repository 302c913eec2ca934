/* See repl.h: setup, INFO, options. */
#include "repl/repl.h"

#include "base/field.h"
#include "engine/info.h"
#include "repl/backlog.h"
#include "repl/departure.h"
#include "repl/failover.h"
#include "repl/follow.h"
#include "repl/identity.h"
#include "repl/peers.h"
#include "repl/replica.h"
#include "repl/sync.h"

#include <inttypes.h>

/* ---- INFO ---- */

struct listing {
    struct buf *out;
    int count;
    int64_t now_ms;
};

static void write_replica(struct replica *r, void *context)
{
    static const char *const names[] = {[REPLICA_WAIT_START] = "wait_bgsave",
                                        [REPLICA_SYNCING] = "send_bulk",
                                        [REPLICA_WAIT_ACK] = "send_bulk",
                                        [REPLICA_ONLINE] = "online"};
    struct listing *l = context;
    enum replica_state state = atomic_load(&r->state);
    int64_t lag_s = state == REPLICA_ONLINE ? (l->now_ms - atomic_load(&r->heard_ms)) / 1000 : 0;
    buf_printf(l->out,
               "slave%d:ip=%s,port=%" PRId64 ",state=%s,offset=%" PRIu64 ",lag=%" PRId64 "\r\n",
               l->count++, r->ip, r->port, names[state], atomic_load(&r->ack_offset), lag_s);
}

/* What the disk keeps, where it is to keep something. */
static void write_reserve(struct buf *out) REQUIRES_SHARED(keyspace_lock)
{
    struct reserve_facts facts;
    if (backlog_look_at_reserve(&facts)) {
        field_text(out, "repl_backlog_disk_state", reserve_state_word(facts.state));
        field_u64(out, "repl_backlog_disk_reserve", facts.size_bytes);
        field_u64(out, "repl_backlog_disk_first_byte_offset",
                  facts.end > facts.begin ? facts.begin + 1 : 0);
        field_u64(out, "repl_backlog_disk_histlen", facts.end - facts.begin);
        field_u64(out, "repl_backlog_disk_queued", facts.queued_bytes);
        field_u64(out, "repl_backlog_disk_faults", facts.faults);
    }
}

static void write_info(struct buf *out)
{
    struct listing l = {.out = out, .now_ms = replica_clock_ms()};
    if (peers->wanted()) {
        peers->write_role(out);
    } else {
        follow_write_info(out);
    }
    field_i64(out, "connected_slaves", replicas_count() + peers->count());
    if (sync_settings.min_replicas > 0 && sync_settings.min_replicas_max_lag_s > 0) {
        field_i64(out, "min_slaves_good_slaves", sync_good_replicas());
    }
    replicas_each(write_replica, &l);
    peers->write_all(out, l.count, l.now_ms);
    bool taken = keyspace_visit();
    uint64_t kept = backlog_kept_bytes(), offset = backlog_offset();
    int64_t second_end = backlog_second_end();
    bool on = backlog_is_on();
    field_text(out, "master_failover_state", failover_word());
    field_text(out, "master_replid", backlog_id());
    field_text(out, "master_replid2", backlog_second_id());
    field_u64(out, "master_repl_offset", offset);
    field_i64(out, "second_repl_offset", second_end < 0 ? -1 : second_end + 1);
    field_i64(out, "repl_backlog_active", on);
    field_i64(out, "repl_backlog_size", backlog_size_bytes);
    field_u64(out, "repl_backlog_first_byte_offset", on ? offset - kept + 1 : 0);
    field_u64(out, "repl_backlog_histlen", kept);
    write_reserve(out);
    keyspace_leave(taken);
}

static const struct info_section info = {
    .name = "replication", .title = "Replication", .in_default = true, .write = write_info};

/* ---- options ---- */

const struct option repl_options[] = {
    {.name = "repl-backlog-size",
     .type = OPTION_MEMORY,
     .target = &backlog_size_bytes,
     .initial = "1mb",
     .min = 1,
     .max = INT64_MAX,
     .floor = 16384},
    {.name = "repl-backlog-disk-reserve",
     .type = OPTION_MEMORY,
     .flags = OPTION_IMMUTABLE,
     .target = &backlog_reserve_bytes,
     .initial = "0",
     .min = 0,
     .max = INT64_MAX},
    {.name = "repl-backlog-ttl",
     .type = OPTION_INT,
     .target = &sync_settings.backlog_ttl_s,
     .initial = "3600",
     .min = 0,
     .max = INT64_MAX},
    {.name = "repl-diskless-sync",
     .type = OPTION_BOOL,
     .target = &sync_settings.diskless,
     .initial = "yes",
     .apply = sync_apply},
    {.name = "repl-disable-tcp-nodelay",
     .type = OPTION_BOOL,
     .target = &sync_settings.disable_nodelay,
     .initial = "no"},
    {.name = "repl-diskless-sync-delay",
     .type = OPTION_INT,
     .target = &sync_settings.diskless_delay_s,
     .initial = "5",
     .min = 0,
     .max = INT32_MAX,
     .apply = sync_apply},
    {.name = "repl-diskless-sync-max-replicas",
     .type = OPTION_INT,
     .target = &sync_settings.diskless_max_replicas,
     .initial = "0",
     .min = 0,
     .max = INT32_MAX,
     .apply = sync_apply},
    {.name = "repl-ping-replica-period",
     .alias = "repl-ping-slave-period",
     .type = OPTION_INT,
     .target = &sync_settings.ping_period_s,
     .initial = "10",
     .min = 1,
     .max = INT32_MAX,
     .apply = sync_apply},
    {.name = "repl-timeout",
     .type = OPTION_INT,
     .target = &sync_settings.timeout_s,
     .initial = "60",
     .min = 1,
     .max = INT32_MAX,
     .apply = sync_apply},
    {.name = "min-replicas-to-write",
     .alias = "min-slaves-to-write",
     .type = OPTION_INT,
     .target = &sync_settings.min_replicas,
     .initial = "0",
     .min = 0,
     .max = INT32_MAX,
     .apply = sync_apply},
    {.name = "min-replicas-max-lag",
     .alias = "min-slaves-max-lag",
     .type = OPTION_INT,
     .target = &sync_settings.min_replicas_max_lag_s,
     .initial = "10",
     .min = 0,
     .max = INT32_MAX,
     .apply = sync_apply},
    {.name = NULL},
};

/* ---- life ---- */

void repl_setup(void)
{
    backlog_setup();
    identity_setup();
    follow_setup();
    departure_setup();
    info_register(&info);
}

void repl_teardown(void)
{
    backlog_teardown();
}

void repl_start(void)
{
    sync_start();
    follow_start();
}

void repl_stop(void)
{
    follow_stop();
    sync_stop();
}
