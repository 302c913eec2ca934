/* What the files of INFO's sections share. For server/info_*.c and sections.c only. State: none. */
#ifndef SERVER_SECTIONS_PRIV_H
#define SERVER_SECTIONS_PRIV_H

#include "base/buf.h"
#include "engine/info.h"

/* Ends with a NULL name. */
extern const struct info_section
    server_sections[]; /* info_server.c: server, modules, cluster, keydb */
extern const struct info_section memory_sections[];  /* info_memory.c: memory */
extern const struct info_section stats_sections[];   /* info_stats.c: stats, cpu */
extern const struct info_section command_sections[]; /* info_commands.c */
extern const struct info_section data_sections[];    /* info_data.c: persistence, keyspace */

/* Draws run id and replication id, notes the start. Boot. */
void info_server_setup(void);
/* 40 hexadecimal digits, NUL-terminated. */
const char *info_run_id(void);
/* When the server started, seconds since 1970. */
int64_t info_start_s(void);
/* Appends "field:value\r\n" with an option's value, or `otherwise` when there is no such option. */
void info_append_option(struct buf *out, const char *field, const char *option,
                        const char *otherwise);
/* Appends "field:bytes\r\nfield_human:...\r\n". */
void info_append_bytes(struct buf *out, const char *field, uint64_t bytes);

#endif
