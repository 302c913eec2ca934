/* The tables of this folder: one row a command (engine/command.h), each table ended by a row
 * without name. The server registers them at boot. State: immutable. */
#ifndef COMMANDS_COMMANDS_H
#define COMMANDS_COMMANDS_H

#include "base/option.h"
#include "engine/command.h"

extern const struct command_row string_commands[];
extern const struct command_row string_set_commands[];
extern const struct command_row string_number_commands[];
extern const struct command_row string_lcs_commands[];
extern const struct command_row hash_commands[];
extern const struct command_row hash_walk_commands[];
extern const struct command_row hash_expire_commands[];
extern const struct command_row bit_commands[];
extern const struct command_row bit_field_commands[];
extern const struct command_row hyperloglog_commands[];
extern const struct command_row geo_commands[];
extern const struct command_row geo_search_commands[];
extern const struct command_row set_commands[];
extern const struct command_row set_random_commands[];
extern const struct command_row set_algebra_commands[];
extern const struct command_row zset_commands[];
extern const struct command_row zset_range_commands[];
extern const struct command_row zset_pop_commands[];
extern const struct command_row zset_algebra_commands[];
extern const struct command_row zset_blocking_commands[];
extern const struct command_row list_commands[];
extern const struct command_row list_index_commands[];
extern const struct command_row list_blocking_commands[];
extern const struct command_row stream_commands[];
extern const struct command_row stream_read_commands[];
extern const struct command_row stream_info_commands[];
extern const struct command_row stream_group_commands[];
extern const struct command_row stream_group_read_commands[];
extern const struct command_row stream_claim_commands[];
extern const struct command_row stream_pending_commands[];
extern const struct command_row stream_peer_commands[];
extern const struct command_row key_commands[];
extern const struct command_row key_expire_commands[];
extern const struct command_row member_expire_commands[];
extern const struct command_row key_scan_commands[];
extern const struct command_row key_object_commands[];
extern const struct command_row transaction_commands[];
extern const struct command_row sort_commands[];
extern const struct command_row nested_commands[];
extern const struct command_row connection_commands[];
extern const struct command_row introspection_commands[];
extern const struct command_row config_commands[];
extern const struct command_row server_commands[];
extern const struct command_row memory_commands[];
extern const struct command_row latency_commands[];
extern const struct command_row slowlog_commands[];
extern const struct command_row debug_commands[];
extern const struct command_row cluster_commands[];
extern const struct command_row pubsub_commands[];
extern const struct command_row acl_commands[];

/* Boot: how DEBUG CHANGE-REPL-ID gives the stream to replicas another id, and how
 * TRUNCATE-REPL-BACKLOG forgets what is kept of it. World. */
void debug_set_backlog(void (*change_id)(void), void (*truncate)(void));
/* Boot: how DEBUG RESTART (orderly) and CRASH-AND-RECOVER run the program anew; false with the
 * error's reply. World. */
void debug_set_restart(bool (*set)(bool orderly, int64_t delay_ms, const char **error));
/* Boot: what DEBUG CLIENT-EVICTION shows; false when there is no limit. World. */
void debug_set_client_eviction(bool (*describe)(struct buf *out));

/* The options of families that have some. */
extern const struct option hyperloglog_options[];
extern const struct option sort_options[];

/* Opens the locale of locale-collate for SORT. Boot, after the configuration is loaded. */
void sort_setup(void);
/* Closes it. */
void sort_teardown(void);

#endif
