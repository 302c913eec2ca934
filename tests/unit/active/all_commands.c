/* See all_commands.h. */
#include "active/all_commands.h"

#include "commands/commands.h"
#include "net/net.h"
#include "persist/persist.h"
#include "repl/migrate.h"
#include "repl/repl.h"
#include "script/script.h"

static const struct command_row *const tables[] = {
    string_commands,
    string_set_commands,
    string_number_commands,
    string_lcs_commands,
    bit_commands,
    bit_field_commands,
    hyperloglog_commands,
    geo_commands,
    geo_search_commands,
    set_commands,
    set_random_commands,
    set_algebra_commands,
    zset_commands,
    zset_range_commands,
    zset_pop_commands,
    zset_algebra_commands,
    list_commands,
    list_index_commands,
    key_commands,
    key_expire_commands,
    key_scan_commands,
    key_object_commands,
    hash_commands,
    hash_walk_commands,
    hash_expire_commands,
    member_expire_commands,
    transaction_commands,
    connection_commands,
    client_commands,
    introspection_commands,
    config_commands,
    server_commands,
    memory_commands,
    latency_commands,
    slowlog_commands,
    debug_commands,
    cluster_commands,
    list_blocking_commands,
    zset_blocking_commands,
    stream_commands,
    stream_read_commands,
    stream_info_commands,
    stream_group_commands,
    sort_commands,
    stream_group_read_commands,
    stream_claim_commands,
    stream_pending_commands,
    stream_peer_commands,
    nested_commands,
    pubsub_commands,
    dump_commands,
    save_commands,
    aof_commands,
    migrate_commands,
    acl_commands,
    repl_commands,
    script_commands,
    function_commands,
    job_commands,
    wait_aof_commands,
};

void all_commands_register(void)
{
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        command_register(tables[t]);
    }
}
