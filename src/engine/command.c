/* The command registry: rows of the families' tables become commands at boot, and requests find
 * them by name.
 *
 * The name index is an open-addressed table of names folded to lower case in two words; a lookup of
 * a name of up to 16 bytes is a few shifts, two multiplications and one compare. Longer names (a
 * handful) are searched in a row. */
#include "engine/command.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/command_priv.h"
#include "engine/keyspecs_priv.h"

#include <assert.h>
#include <stdlib.h>

/* Names that fit two words. */
#define INDEX_NAME_MAX 16
/* The index is at most a quarter full, so that runs of occupied slots stay short. */
#define INDEX_MIN_SLOTS 64
#define INDEX_FILL_DIVISOR 4

const char *const command_flag_names[] = {
    "write",
    "readonly",
    "denyoom",
    "module",
    "admin",
    "pubsub",
    "noscript",
    "blocking",
    "loading",
    "stale",
    "skip_monitor",
    "skip_slowlog",
    "asking",
    "fast",
    "no_auth",
    /* may_replicate and protected are internal to Redis as well */
    "",
    "no_mandatory_keys",
    "",
    "no_async_loading",
    "no_multi",
    "movablekeys",
    "allow_busy",
    NULL,
};

struct name_slot {
    uint64_t head, tail;           /* the folded name's first and last bytes, which may overlap */
    size_t len;                    /* tells names apart that head and tail do not */
    const struct command *command; /* NULL: free */
};

/* The name that clients know a command by, "" when none does. */
struct other_name {
    const struct command *command;
    char *name;
};

static struct {
    const struct command **commands; /* containers and plain commands, in order of registration */
    unsigned count;
    const struct command **by_id;
    unsigned id_count;
    struct name_slot *slots; /* slot_count of them, a power of two */
    unsigned slot_count;
    unsigned slot_shift; /* 64 - log2(slot_count): the index is the hash's high bits */
    const struct command **long_names; /* those over INDEX_NAME_MAX */
    unsigned long_count;
    struct other_name *other_names; /* rename-command */
    unsigned other_count;
} registry;

bool command_any_renamed;

/* ---- Names */

static inline char fold_char(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Folds the ASCII letters of eight bytes at once. In each byte the two sums carry into bit 7 from
 * 'A' on and after 'Z'; where only the first did (and the byte was ASCII) bit 5 is set. No sum can
 * carry into the next byte. */
static inline uint64_t fold_word(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t low = word & (ones * 0x7f);
    uint64_t from_a = low + ones * (0x80 - 'A');
    uint64_t after_z = low + ones * (0x7f - 'Z');
    uint64_t upper = (from_a ^ after_z) & ~word & (ones * 0x80);
    return word | upper >> 2;
}

/* Loads a name of 1 .. INDEX_NAME_MAX bytes without reading beyond it. */
static inline void load_name(struct slice name, uint64_t *head, uint64_t *tail)
{
    const char *p = name.ptr;
    if (name.len >= 8) {
        *head = fold_word(hash_load64(p));
        *tail = fold_word(hash_load64(p + name.len - 8));
    } else if (name.len >= 4) {
        *head = fold_word(hash_load32(p) | hash_load32(p + name.len - 4) << 32);
        *tail = 0;
    } else {
        *head = fold_word((uint64_t)(unsigned char)p[0] |
                          (uint64_t)(unsigned char)p[name.len >> 1] << 8 |
                          (uint64_t)(unsigned char)p[name.len - 1] << 16);
        *tail = 0;
    }
}

/* The table's content is fixed at boot, so nobody can prepare collisions: a plain multiplicative
 * hash does. */
static inline uint64_t name_hash(uint64_t head, uint64_t tail, size_t len)
{
    return ((head * UINT64_C(0x9e3779b97f4a7c15)) ^ (tail + len)) * UINT64_C(0xd6e8feb86659fd93);
}

static bool equal_folded(struct slice a, struct slice b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (fold_char(a.ptr[i]) != fold_char(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

/* By which clients know it. */
static const char *name_of(const struct command *c)
{
    for (unsigned i = 0; i < registry.other_count; i++) {
        if (registry.other_names[i].command == c) {
            return registry.other_names[i].name;
        }
    }
    return c->row->name;
}

static const struct command *find_long(struct slice name)
{
    for (unsigned i = 0; i < registry.long_count; i++) {
        if (equal_folded(name, slice_cstr(name_of(registry.long_names[i])))) {
            return registry.long_names[i];
        }
    }
    return NULL;
}

const struct command *command_find(struct slice name)
{
    if (unlikely(name.len - 1 >= INDEX_NAME_MAX || registry.slot_count == 0)) {
        return name.len > INDEX_NAME_MAX ? find_long(name) : NULL;
    }
    uint64_t head, tail;
    load_name(name, &head, &tail);
    unsigned i = (unsigned)(name_hash(head, tail, name.len) >> registry.slot_shift);
    for (;;) {
        const struct name_slot *slot = &registry.slots[i];
        if (slot->head == head && slot->tail == tail && slot->len == name.len) {
            return slot->command;
        }
        if (slot->command == NULL) {
            return NULL;
        }
        i = (i + 1) & (registry.slot_count - 1);
    }
}

const struct command *command_find_sub(const struct command *container, struct slice name)
{
    for (unsigned i = 0; i < container->subcommand_count; i++) {
        if (equal_folded(name, slice_cstr(container->subcommands[i].row->name))) {
            return &container->subcommands[i];
        }
    }
    return NULL;
}

const struct command *command_find_original(struct slice name)
{
    if (likely(!command_any_renamed)) {
        return command_find(name);
    }
    for (unsigned id = 0; id < registry.id_count; id++) {
        const struct command *c = registry.by_id[id];
        if (!c->parent && equal_folded(name, slice_cstr(c->row->name))) {
            return c;
        }
    }
    return NULL;
}

static const struct command *find_full(struct slice full_name,
                                       const struct command *(*find)(struct slice name))
{
    const char *bar = full_name.len ? memchr(full_name.ptr, '|', full_name.len) : NULL;
    if (bar == NULL) {
        return find(full_name);
    }
    size_t head = (size_t)(bar - full_name.ptr);
    const struct command *container = find(slice_of(full_name.ptr, head));
    return container == NULL
               ? NULL
               : command_find_sub(container, slice_of(bar + 1, full_name.len - head - 1));
}

const struct command *command_find_full(struct slice full_name)
{
    return find_full(full_name, command_find);
}

const struct command *command_find_original_full(struct slice full_name)
{
    return find_full(full_name, command_find_original);
}

struct slice command_word(const struct command *c)
{
    return slice_cstr(c->parent ? c->parent->row->name : c->row->name);
}

unsigned command_count(void)
{
    return registry.count;
}

const struct command *command_at(unsigned index)
{
    assert(index < registry.count);
    return registry.commands[index];
}

unsigned command_id_count(void)
{
    return registry.id_count;
}

const struct command *command_by_id(unsigned id)
{
    assert(id < registry.id_count);
    return registry.by_id[id];
}

/* ---- Registration */

static NORETURN void reject_row(const struct command_row *row, const char *why)
{
    log_warning("Command table: %s: %s", row->name, why);
    abort();
}

static void check_row(const struct command_row *row, const struct command *parent)
{
    if (row->name[0] == '\0' || row->name[strcspn(row->name, "|ABCDEFGHIJKLMNOPQRSTUVWXYZ ")]) {
        reject_row(row, "the name is empty or has capitals, blanks or bars");
    }
    if (row->arity == 0 || row->arity < INT16_MIN || row->arity > INT16_MAX) {
        reject_row(row, "impossible arity");
    }
    if (row->run == NULL && row->subcommands == NULL) {
        reject_row(row, "neither a handler nor subcommands");
    }
    if (parent != NULL && row->subcommands != NULL) {
        reject_row(row, "a subcommand cannot have subcommands");
    }
    if (row->members.first == 0 ? row->members.step != 0 : row->keys == NULL) {
        reject_row(row, "members of no key");
    }
    if ((row->flags & CMD_WRITE) && (row->flags & CMD_READONLY)) {
        reject_row(row, "both write and readonly");
    }
    if (row->group == NULL || row->since == NULL || row->summary == NULL) {
        reject_row(row, "no group, since or summary");
    }
}

/* Categories that flags imply, as Redis 7 derives them (its setImplicitACLCategories, seen through
 * ACL CAT). */
static uint32_t implied_categories(uint32_t flags, uint32_t explicit_categories)
{
    uint32_t implied = flags & CMD_FAST ? CATEGORY_FAST : CATEGORY_SLOW;
    if (flags & CMD_WRITE) {
        implied |= CATEGORY_WRITE;
    }
    /* Scripts are read-only only in what they may call. */
    if ((flags & CMD_READONLY) && !(explicit_categories & CATEGORY_SCRIPTING)) {
        implied |= CATEGORY_READ;
    }
    if (flags & CMD_ADMIN) {
        implied |= CATEGORY_ADMIN | CATEGORY_DANGEROUS;
    }
    if (flags & CMD_PUBSUB) {
        implied |= CATEGORY_PUBSUB;
    }
    if (flags & CMD_BLOCKING) {
        implied |= CATEGORY_BLOCKING;
    }
    return implied;
}

static const char *make_full_name(const struct command_row *row, const struct command *parent)
{
    if (parent == NULL) {
        return row->name;
    }
    size_t head = strlen(parent->row->name), tail = strlen(row->name);
    char *name = mem_alloc(head + 1 + tail + 1);
    memcpy(name, parent->row->name, head);
    name[head] = '|';
    memcpy(name + head + 1, row->name, tail + 1);
    return name;
}

bool command_fill(struct command *c, const char **error)
{
    const struct command_row *row = c->row;
    c->run = row->run;
    c->flags = row->flags | (row->members.first ? CMD_LOOKS_AHEAD : 0);
    c->arity = row->arity;
    c->categories = row->categories;
    if (!(row->flags & CMD_MODULE)) { /* modules say all of theirs, as in Redis */
        c->categories |= implied_categories(row->flags, row->categories);
    }
    c->spec_count = 0;
    if (row->keys != NULL && !keyspecs_parse(row->keys, c, error)) {
        return false;
    }
    keyspecs_summarise(c);
    if (c->extra && c->extra->find_keys) {
        c->find_keys = c->extra->find_keys;
        c->flags |= CMD_MOVABLE_KEYS;
        c->simple_keys = false;
    }
    return true;
}

void command_give_id(struct command *c)
{
    assert(registry.id_count < COMMAND_ID_MAX);
    c->id = (uint16_t)registry.id_count++;
    registry.by_id = mem_realloc(registry.by_id, registry.id_count * sizeof(*registry.by_id));
    registry.by_id[c->id] = c;
}

void command_moved(struct command *c)
{
    registry.by_id[c->id] = c;
}

static void build_command(struct command *c, const struct command_row *row,
                          const struct command *parent)
{
    const char *error;
    check_row(row, parent);
    c->row = row;
    c->parent = parent;
    c->full_name = make_full_name(row, parent);
    if (!command_fill(c, &error)) {
        reject_row(row, error);
    }
    if (registry.id_count == COMMAND_ID_MAX) {
        reject_row(row, "too many commands");
    }
    command_give_id(c);
}

static void build_subcommands(struct command *container, const struct command_row *rows)
{
    unsigned count = 0;
    while (rows[count].name != NULL) {
        count++;
    }
    struct command *subcommands = mem_calloc(count, sizeof(*subcommands));
    container->subcommands = subcommands;
    for (unsigned i = 0; i < count; i++) {
        if (command_find_sub(container, slice_cstr(rows[i].name)) != NULL) {
            reject_row(&rows[i], "double subcommand");
        }
        build_command(&subcommands[i], &rows[i], container);
        container->subcommand_count = (uint16_t)(i + 1);
    }
}

static void index_insert(const struct command *c)
{
    struct slice name = slice_cstr(name_of(c));
    assert(name.len > 0 && name.len <= INDEX_NAME_MAX);
    struct name_slot slot = {.len = name.len, .command = c};
    load_name(name, &slot.head, &slot.tail);
    uint64_t hash = name_hash(slot.head, slot.tail, slot.len);
    unsigned i = (unsigned)(hash >> registry.slot_shift);
    while (registry.slots[i].command != NULL) {
        i = (i + 1) & (registry.slot_count - 1);
    }
    registry.slots[i] = slot;
}

static void index_add(const struct command *c)
{
    if (strlen(name_of(c)) <= INDEX_NAME_MAX) {
        index_insert(c);
        return;
    }
    registry.long_names =
        mem_realloc(registry.long_names, (registry.long_count + 1) * sizeof(*registry.long_names));
    registry.long_names[registry.long_count++] = c;
}

/* Makes a larger index for the commands there are. */
static void index_grow(void)
{
    unsigned slot_count = INDEX_MIN_SLOTS, bits = 6;
    while (slot_count < registry.count * INDEX_FILL_DIVISOR) {
        slot_count *= 2;
        bits++;
    }
    mem_free(registry.slots);
    registry.slots = mem_alloc_aligned(CACHE_LINE_BYTES, slot_count * sizeof(struct name_slot));
    memset(registry.slots, 0, slot_count * sizeof(struct name_slot));
    registry.slot_count = slot_count;
    registry.slot_shift = 64 - bits;
    registry.long_count = 0;
    for (unsigned i = 0; i < registry.count; i++) {
        index_add(registry.commands[i]);
    }
}

void command_list_add(const struct command *c)
{
    registry.commands =
        mem_realloc(registry.commands, (registry.count + 1) * sizeof(*registry.commands));
    registry.commands[registry.count++] = c;
    if (registry.count * INDEX_FILL_DIVISOR > registry.slot_count) {
        index_grow();
    } else {
        index_add(c);
    }
}

void command_register(const struct command_row *rows)
{
    static_assert(INDEX_MIN_SLOTS == 1 << 6, "index_grow counts bits from 6");
    for (; rows->name != NULL; rows++) {
        if (command_find(slice_cstr(rows->name)) != NULL) {
            reject_row(rows, "double command");
        }
        struct command *c = mem_calloc(1, sizeof(*c));
        build_command(c, rows, NULL);
        if (rows->subcommands != NULL) {
            build_subcommands(c, rows->subcommands);
        }
        command_list_add(c);
    }
}

/* Among those that clients know; removed ones are not, by whatever name. */
static void remove_from_list(const struct command *c)
{
    unsigned i = 0;
    while (registry.commands[i] != c) {
        i++;
    }
    registry.count--;
    memmove(registry.commands + i, registry.commands + i + 1,
            (registry.count - i) * sizeof(*registry.commands));
}

void command_list_remove(const struct command *c)
{
    remove_from_list(c);
    index_grow();
}

static void set_other_name(const struct command *c, struct slice name)
{
    unsigned i = 0;
    while (i < registry.other_count && registry.other_names[i].command != c) {
        i++;
    }
    if (i == registry.other_count) {
        registry.other_names = mem_realloc(registry.other_names,
                                           ++registry.other_count * sizeof(*registry.other_names));
        registry.other_names[i] = (struct other_name){.command = c};
    }
    mem_free(registry.other_names[i].name);
    registry.other_names[i].name = mem_dup(name.ptr, name.len);
}

const char *command_rename(struct slice from, struct slice to)
{
    const struct command *c = command_find(from);
    if (!c) {
        return "No such command in rename-command";
    }
    if (to.len > 0 && (command_find(to) || command_find_original(to))) {
        return "Target command name already exists";
    }
    set_other_name(c, to);
    command_any_renamed = true;
    if (to.len == 0) {
        remove_from_list(c);
    }
    index_grow();
    return NULL;
}

static void free_command(const struct command *c)
{
    for (unsigned k = 0; k < c->subcommand_count; k++) {
        mem_free((char *)c->subcommands[k].full_name);
    }
    if (c->extra || c->retired) {
        mem_free((char *)c->full_name);
    }
    mem_free((struct command *)c->subcommands);
    mem_free((struct command *)c);
}

void command_teardown(void)
{
    command_category_teardown();
    for (unsigned id = registry.id_count; id > 0; id--) { /* subcommands before their containers */
        if (registry.by_id[id - 1]->retired && !registry.by_id[id - 1]->parent) {
            free_command(registry.by_id[id - 1]);
        }
    }
    for (unsigned i = 0; i < registry.count; i++) {
        free_command(registry.commands[i]);
    }
    for (unsigned i = 0; i < registry.other_count; i++) {
        if (registry.other_names[i].name[0] == '\0') {
            free_command(registry.other_names[i].command);
        }
        mem_free(registry.other_names[i].name);
    }
    mem_free(registry.other_names);
    command_any_renamed = false;
    mem_free(registry.commands);
    mem_free(registry.by_id);
    mem_free(registry.slots);
    mem_free(registry.long_names);
    memset(&registry, 0, sizeof(registry));
}

/* ---- rename-command */

static bool parse_rename(const struct option *option UNUSED, const struct slice *words, int count,
                         const char **error)
{
    if (count == 1 && words[0].len == 0) { /* the built-in default: none */
        return true;
    }
    *error = count == 2 ? command_rename(words[0], words[1])
                        : "wrong number of arguments: a command's name and its new one, or \"\"";
    return !*error;
}

static void format_rename(const struct option *option UNUSED, struct buf *out UNUSED)
{
}

/* It changes at boot only. */
static bool rename_lines(bool in_include UNUSED, struct buf *out UNUSED, bool *lost UNUSED)
{
    return false;
}

const struct option command_options[] = {
    {.name = "rename-command",
     .type = OPTION_CUSTOM,
     .flags = OPTION_IMMUTABLE | OPTION_MULTI | OPTION_HIDDEN,
     .initial = "",
     .parse = parse_rename,
     .format = format_rename,
     .lines = rename_lines},
    {.name = NULL},
};
