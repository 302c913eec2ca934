/* Commands of modules, which come and go: see command.h. A command that has gone stays in its
 * place, since a thread may have it prepared, queued (MULTI) or in its memory of what it found last
 * (execute.c): it says then that it is unknown. */
#include "engine/command_priv.h"

#include "base/mem.h"
#include "engine/acl.h"
#include "engine/cmdstats.h"
#include "engine/execute.h"

#include <assert.h>

/* Room for subcommands grows by so many. */
#define SUBCOMMANDS_STEP 8

/* Of what has gone. */
static const struct command_row retired_row = {
    .name = "",
    .run = call_reply_unknown,
    .arity = -1,
    .group = "module",
    .since = "",
    .summary = "",
};

/* A command of that name that has gone, without subcommands; NULL: there was none. */
static struct command *find_retired(struct slice name)
{
    for (unsigned id = 0; id < command_id_count(); id++) {
        const struct command *c = command_by_id(id);
        if (c->retired && !c->parent && !c->subcommands && slice_equal_nocase(name, c->full_name)) {
            return (struct command *)c;
        }
    }
    return NULL;
}

static bool fill(struct command *c, const struct command_row *row,
                 const struct command_extra *extra)
{
    const char *error;
    c->row = row;
    c->extra = extra;
    c->retired = false;
    return command_fill(c, &error);
}

static void retire_one(struct command *c)
{
    bool fine = fill(c, &retired_row, NULL);
    assert(fine);
    (void)fine;
    c->retired = true;
}

struct command *command_add(const struct command_row *row, const struct command_extra *extra)
{
    struct slice name = slice_cstr(row->name);
    assert(name.len > 0 && extra);
    if (command_find(name) || command_find_original(name)) {
        return NULL;
    }
    struct command *c = find_retired(name);
    if (!c && command_id_count() == COMMAND_ID_MAX) {
        return NULL;
    }
    if (!c) {
        c = mem_calloc(1, sizeof(*c));
        c->retired = true;
        command_give_id(c);
    }
    mem_free((char *)c->full_name);
    c->full_name = mem_dup(name.ptr, name.len);
    if (!fill(c, row, extra)) {
        retire_one(c);
        return NULL;
    }
    command_list_add(c);
    return c;
}

/* Room for one subcommand more; those that there are may move. */
static void grow_subcommands(struct command *container)
{
    uint16_t count = container->subcommand_count;
    if (count % SUBCOMMANDS_STEP != 0) {
        return;
    }
    struct command *moved = mem_calloc((size_t)count + SUBCOMMANDS_STEP, sizeof(*moved));
    if (count > 0) {
        memcpy(moved, container->subcommands, count * sizeof(*moved));
    }
    for (uint16_t i = 0; i < count; i++) {
        command_moved(&moved[i]);
    }
    mem_free((struct command *)container->subcommands);
    container->subcommands = moved;
}

static char *join_names(const struct command *container, const struct command_row *row)
{
    struct buf name = {0};
    buf_printf(&name, "%s|%s", container->full_name, row->name);
    char *joined = mem_dup(name.data, name.len);
    buf_deinit(&name);
    return joined;
}

struct command *command_add_sub(struct command *container, const struct command_row *row,
                                const struct command_extra *extra)
{
    assert(container->extra && !container->parent && extra);
    if (command_find_sub(container, slice_cstr(row->name)) ||
        command_id_count() == COMMAND_ID_MAX || container->subcommand_count == UINT16_MAX) {
        return NULL;
    }
    grow_subcommands(container);
    struct command *c = (struct command *)&container->subcommands[container->subcommand_count];
    *c = (struct command){.parent = container};
    if (!fill(c, row, extra)) {
        return NULL;
    }
    c->full_name = join_names(container, row);
    command_give_id(c);
    container->subcommand_count++;
    return c;
}

bool command_follow_row(struct command *c)
{
    struct command before = *c;
    const char *error;
    if (command_fill(c, &error)) {
        return true;
    }
    *c = before;
    return false;
}

void command_retire(struct command *c)
{
    assert(!c->parent);
    if (!c->retired) {
        command_list_remove(c);
    }
    for (uint16_t i = 0; i < c->subcommand_count; i++) {
        retire_one((struct command *)&c->subcommands[i]);
    }
    retire_one(c);
}

void command_settle(void)
{
    cmdstats_grow();
    acl_refresh_commands();
}
