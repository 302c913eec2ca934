/* Puts the sections in order. */
#include "server/sections.h"
#include "server/rates.h"
#include "server/sections_priv.h"
#include "commands/memory_figures.h"
#include "engine/config.h"
#include "net/net_info.h"
#include "persist/aof_tail.h"
#include "repl/backlog.h"
#include "script/script.h"
#include "base/field.h"
#include "base/mem.h"
#include "base/num.h"

#include <assert.h>

static void sections_write_nothing(struct buf *out)
{
    (void)out;
}

static const struct info_section clients_placeholder = {
    .name = "clients", .title = "Clients", .in_default = true, .write = sections_write_nothing};

static const struct info_section replication_placeholder = {.name = "replication",
                                                            .title = "Replication",
                                                            .in_default = true,
                                                            .write = sections_write_nothing};

/* The table that has the section, and the section; Redis's order, KeyDB's own last. */
static const struct {
    const struct info_section *table;
    const char *name;
} sections_order[] = {
    {server_sections, "server"},
    {&clients_placeholder, "clients"},
    {memory_sections, "memory"},
    {data_sections, "persistence"},
    {stats_sections, "stats"},
    {&replication_placeholder, "replication"},
    {stats_sections, "cpu"},
    {server_sections, "modules"},
    {command_sections, "commandstats"},
    {command_sections, "errorstats"},
    {command_sections, "latencystats"},
    {server_sections, "cluster"},
    {data_sections, "keyspace"},
    {server_sections, "keydb"},
};

static const struct info_section *sections_find(const struct info_section *table, const char *name)
{
    while (strcmp(table->name, name) != 0) {
        table++;
        assert(table->name);
    }
    return table;
}

static void tell_memory(struct memory_figures *f)
{
    struct script_figures scripts = script_figures();
    f->clients = net_info_client_bytes();
    f->replicas = backlog_readers_bytes();
    size_t all = chain_memory_bytes();
    f->backlog = all > f->replicas ? all - f->replicas : 0;
    f->aof = aof_tail_memory_bytes();
    f->scripts = scripts.scripts_bytes;
    f->functions = scripts.functions_bytes;
}

void sections_setup(void)
{
    info_server_setup();
    memory_figures_set_source(tell_memory);
    for (size_t i = 0; i < sizeof(sections_order) / sizeof(sections_order[0]); i++) {
        info_register(sections_find(sections_order[i].table, sections_order[i].name));
    }
    cron_register(&rates_job);
}

void sections_started(void)
{
    memory_figures_note_startup();
}

void info_append_option(struct buf *out, const char *field, const char *option,
                        const char *otherwise)
{
    const struct option *o = config_find(slice_cstr(option));
    field_part_text(out, field, ":");
    if (o) {
        option_format(o, out);
    } else {
        buf_append_cstr(out, otherwise);
    }
    buf_append_cstr(out, "\r\n");
}

void info_append_bytes(struct buf *out, const char *field, uint64_t bytes)
{
    char human[32];
    num_format_bytes_human(human, sizeof(human), bytes);
    field_u64(out, field, bytes);
    field_part_text(out, field, "_human:");
    field_part_text(out, human, "\r\n");
}
