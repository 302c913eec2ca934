/* Commands as data. A family exports a table of `struct command_row`; the registry turns rows into
 * `struct command` at boot and finds them by name. State: rows are immutable; commands are
 * immutable after boot. */
#ifndef ENGINE_COMMAND_H
#define ENGINE_COMMAND_H

#include "base/option.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct call;
struct command;
struct key_place;
struct reply;

/* Flags: those that COMMAND INFO shows (the first ones, in the order of command_flag_names), and
 * our own. */
enum command_flag {
    CMD_WRITE = 1 << 0,
    CMD_READONLY = 1 << 1,
    CMD_DENYOOM = 1 << 2,
    CMD_MODULE = 1 << 3,
    CMD_ADMIN = 1 << 4,
    CMD_PUBSUB = 1 << 5,
    CMD_NOSCRIPT = 1 << 6,
    CMD_BLOCKING = 1 << 7,
    CMD_LOADING = 1 << 8,
    CMD_STALE = 1 << 9,
    CMD_SKIP_MONITOR = 1 << 10,
    CMD_SKIP_SLOWLOG = 1 << 11,
    CMD_ASKING = 1 << 12,
    CMD_FAST = 1 << 13,
    CMD_NO_AUTH = 1 << 14,
    CMD_MAY_REPLICATE = 1 << 15,
    CMD_NO_MANDATORY_KEYS = 1 << 16,
    CMD_PROTECTED = 1 << 17,
    CMD_NO_ASYNC_LOADING = 1 << 18,
    CMD_NO_MULTI = 1 << 19,
    CMD_MOVABLE_KEYS = 1 << 20,
    CMD_ALLOW_BUSY = 1 << 21,
    CMD_SENTINEL = 1 << 22, /* in tables as a fact; never shown by a server */
    /* Ours. How a command runs follows from them: WORLD, else WRITE or EXCLUSIVE, else READONLY
     * (shared), else without any lock. */
    CMD_WORLD = 1 << 24, /* runs under the GIL, everybody else stands still; locks the keyspace
                            itself if it must */
    CMD_BARRIER =
        1 << 25, /* changes how later requests of the client are understood: parsing waits for it */
    CMD_TRANSACTION = 1 << 28, /* concerns MULTI: see command_row.transaction; what it holds depends
                                  on its session */
    CMD_EXCLUSIVE = 1 << 23,   /* runs under the exclusive lock, though it is no write */
    CMD_WAITS_QUIETLY = 1 << 27, /* may wait like one with CMD_BLOCKING (block.h), though COMMAND
                                    INFO and the categories do not tell */
    CMD_SLOW = 1 << 26,       /* work grows with the data: is timed by itself, and may end a hold */
    CMD_SUBSCRIBED = 1 << 29, /* a RESP2 client that subscribes to something may still send it */
    CMD_CONFIRMS = 1 << 30,   /* replies with pushes, which CLIENT REPLY does not hold back */
    /* The same bits in the flags of an EXEC (transaction_flags): something in its queue lacks
     * CMD_LOADING, or CMD_STALE. */
    CMD_SOME_NOT_LOADING = CMD_WAITS_QUIETLY,
    CMD_SOME_NOT_STALE = CMD_SUBSCRIBED,
};

/* Of commands whose rows say where their members stand; set by the registry. */
#define CMD_LOOKS_AHEAD ((uint32_t)1 << 31)
/* Commands whose calls may come to wait. */
#define CMD_MAY_WAIT (CMD_BLOCKING | CMD_WAITS_QUIETLY)

/* ACL categories as bits, in the order of `ACL CAT`. */
enum command_category {
    CATEGORY_KEYSPACE = 1 << 0,
    CATEGORY_READ = 1 << 1,
    CATEGORY_WRITE = 1 << 2,
    CATEGORY_SET = 1 << 3,
    CATEGORY_SORTEDSET = 1 << 4,
    CATEGORY_LIST = 1 << 5,
    CATEGORY_HASH = 1 << 6,
    CATEGORY_STRING = 1 << 7,
    CATEGORY_BITMAP = 1 << 8,
    CATEGORY_HYPERLOGLOG = 1 << 9,
    CATEGORY_GEO = 1 << 10,
    CATEGORY_STREAM = 1 << 11,
    CATEGORY_PUBSUB = 1 << 12,
    CATEGORY_ADMIN = 1 << 13,
    CATEGORY_FAST = 1 << 14,
    CATEGORY_SLOW = 1 << 15,
    CATEGORY_BLOCKING = 1 << 16,
    CATEGORY_DANGEROUS = 1 << 17,
    CATEGORY_CONNECTION = 1 << 18,
    CATEGORY_TRANSACTION = 1 << 19,
    CATEGORY_SCRIPTING = 1 << 20,
    CATEGORY_REPLICATION = 1 << 21, /* of KeyDB: what a replica sends until it is fed */
};

/* What a command does when its client is in a transaction (rows with CMD_TRANSACTION). */
enum command_transaction {
    TRANSACTION_QUEUED, /* all others: waits for EXEC */
    TRANSACTION_OPENS,  /* MULTI */
    TRANSACTION_RUNS,   /* EXEC */
    TRANSACTION_DROPS,  /* DISCARD, RESET */
    TRANSACTION_BESIDE, /* runs at once: WATCH, QUIT */
};

/* Where a call names members (fields) that it looks up in the value of its first key: argv[first],
 * argv[first + step] ... as far as there are arguments; first < 0 counts from the end, step 0 is
 * just one. A hint (engine/lookahead.h): more or less than is looked up does no harm. first 0: no
 * members. */
struct command_members {
    int8_t first, step;
};

/* One row of a family's table. Texts live forever. Tables end with a row whose name is NULL. */
struct command_row {
    const char *name; /* lower case; of a subcommand only its own word ("get" of CONFIG GET) */
    void (*run)(struct call *c); /* NULL for a container without own action */
    int arity;                   /* argument count with the name(s); negative: at least */
    uint32_t flags;              /* enum command_flag */
    uint32_t categories; /* explicit ACL categories; those that follow from flags are added */
    const char *keys;    /* key specs as in commands.tsv: "i1/r0,1,0/RO+ACCESS; ..." or NULL */
    const char *tips;    /* "a,b" or NULL */
    const char *group;   /* "string", "generic" ... */
    const char *since;
    const char *summary;    /* one sentence of our own */
    const char *complexity; /* of our own, or NULL */
    const char *args;       /* argument syntax as in commands.tsv: "key value [NX|XX]" or NULL */
    const char *history;    /* "7.0.0:Added x.|6.2.0:..." or NULL */
    const char *deprecated_since, *replaced_by; /* NULL when alive */
    const struct command_row *subcommands;      /* table, or NULL */
    enum command_transaction transaction;
    struct command_members members;
    /* For a command whose calls tell by their arguments whether they write, need memory or bear old
     * data (scripts do): the flags of this call. With the keyspace lock in exclusive mode. NULL:
     * those of the command are all that is known. */
    uint32_t (*flags_of)(const struct call *c);
    /* For a command with CMD_BARRIER whose calls tell by their arguments and session whether they
     * are barriers (HELLO). NULL: all are. */
    bool (*is_barrier)(const struct call *c);
    /* For a command with CMD_MAY_WAIT: whether a call may come to wait, as its arguments tell
     * (WAIT), or what has been seen of a module's. (A call of a module that has said no may wait
     * all the same: net/turn_cut.c.) NULL: all may, but see parked_possible. */
    bool (*may_wait)(const struct call *c);
    /* Asked to learn whether the server is well: refused, as a write is, while its disk fails. */
    bool is_probe;
};

enum key_begin { KEY_BEGIN_INDEX, KEY_BEGIN_KEYWORD, KEY_BEGIN_UNKNOWN };
enum key_find { KEY_FIND_RANGE, KEY_FIND_KEYNUM, KEY_FIND_UNKNOWN };
enum key_flag {
    KEY_RO = 1 << 0,
    KEY_RW = 1 << 1,
    KEY_OW = 1 << 2,
    KEY_RM = 1 << 3,
    KEY_ACCESS = 1 << 4,
    KEY_UPDATE = 1 << 5,
    KEY_INSERT = 1 << 6,
    KEY_DELETE = 1 << 7,
    KEY_NOT_KEY = 1 << 8,
    KEY_INCOMPLETE = 1 << 9,
    KEY_VARIABLE_FLAGS = 1 << 10,
    /* Ours, never shown: the argument is a path, the key its part before the first dot. */
    KEY_OF_PATH = 1 << 11,
};
struct key_spec {
    enum key_begin begin;
    int index; /* KEY_BEGIN_INDEX, or where the search for the keyword starts */
    char keyword[16];
    enum key_find find;
    int last, step, limit;                    /* range */
    int keynum_index, first_key, keynum_step; /* keynum */
    uint32_t flags;                           /* enum key_flag */
};

/* What becomes of a channel that command_extra.find_channels finds: flags of its key_place. */
enum channel_flag {
    CHANNEL_IS_PATTERN = 1 << 0,
    CHANNEL_PUBLISHED = 1 << 1,
    CHANNEL_SUBSCRIBED = 1 << 2,
    CHANNEL_LEFT = 1 << 3
};

/* What a command that came with a module has beside its row (command_add). */
struct command_extra {
    const char *module; /* the module's name */
    void *owner;        /* what the module's side keeps of it */
    /* Finds the keys, as command.find_keys, whatever the row says of them. NULL: the row tells. */
    int (*find_keys)(const struct command *c, const struct slice *argv, int argc,
                     struct key_place *places, int max);
    /* The same of channels, for ACL. NULL: it has none. */
    int (*find_channels)(const struct command *c, const struct slice *argv, int argc,
                         struct key_place *places, int max);
    /* Replies the arguments as COMMAND DOCS shows them, an array. NULL: there are none. */
    void (*reply_arguments)(const struct command *c, struct reply *r);
};

#define COMMAND_MAX_KEY_SPECS 4
/* Ids are below it: they index tables of statistics and users' permissions. */
#define COMMAND_ID_MAX 4096

struct command {
    void (*run)(struct call *c);
    uint32_t flags;
    int32_t arity;
    /* The usual case, taken apart for speed: keys are argv[first], argv[first+step] ... argv[last]
     * (negative last counts from the end). first 0: no keys. simple_keys false: ask the specs. */
    bool simple_keys;
    int16_t first_key, last_key, key_step;
    uint16_t id; /* dense number, for statistics */
    uint16_t spec_count;
    uint32_t categories;
    /* For the few commands whose keys no spec tells (SORT, MIGRATE, BITOP's shifts) or whose key
     * flags depend on the arguments (SET, BITFIELD); NULL for all others. Contract of
     * command_find_keys. */
    int (*find_keys)(const struct command *c, const struct slice *argv, int argc,
                     struct key_place *places, int max);
    const struct command_row *row;
    const struct command *parent; /* of a subcommand */
    const struct command *subcommands;
    uint16_t subcommand_count;
    const char *full_name;             /* "config|get" */
    const struct command_extra *extra; /* of a module's command; NULL: one of the server's */
    bool retired;                      /* its module has been taken out: it only says so */
    struct key_spec specs[COMMAND_MAX_KEY_SPECS];
};

/* Adds a family's table. Boot; aborts on a malformed row or a double name. */
void command_register(const struct command_row *rows);
/* Frees the registry. */
void command_teardown(void);

/* ---- commands that come and go while the server runs. World. ---- */

/* A module's command: its row, whose name may have capitals, and what belongs to it live until the
 * command is retired. NULL when the name is taken, or there are too many commands. The caller ends
 * with command_settle. */
struct command *command_add(const struct command_row *row, const struct command_extra *extra);
/* The same of a subcommand of such a command. Subcommands may move by it: who keeps one keeps its
 * id. */
struct command *command_add_sub(struct command *container, const struct command_row *row,
                                const struct command_extra *extra);
/* The row has changed (keys, flags, arity): the command follows it. False, with nothing changed,
 * when its keys are malformed. */
bool command_follow_row(struct command *c) MUST_CHECK;
/* Nobody finds it any more; who has it prepared is told that it is unknown. It keeps its id and its
 * memory, for a command of the same name. */
void command_retire(struct command *c);
/* Commands have come or gone: figures have room for them, and users may what their rules say. */
void command_settle(void);

/* The command of that name in any case (no subcommands), NULL when unknown. Hot. */
const struct command *command_find(struct slice name);
/* The subcommand of a container, NULL when unknown. */
const struct command *command_find_sub(const struct command *container, struct slice name);
/* By full name "config|get" or "get". */
const struct command *command_find_full(struct slice full_name);

/* Gives a command another name for clients and scripts, or none ("" as rename-command has it).
 * NULL, or why not: there is no such command, or something has, or once had, the new name. What is
 * told to files, replicas and peers, and the rules of users, keep the names that commands were born
 * with. Boot, after all tables are registered. */
const char *command_rename(struct slice from, struct slice to) MUST_CHECK;
/* rename-command, a line for each. */
extern const struct option command_options[];
/* True when some command has another name. Immutable after boot. */
extern bool command_any_renamed;
/* By the name that it was born with, which clients may not know any more. */
const struct command *command_find_original(struct slice name);
const struct command *command_find_original_full(struct slice full_name);
/* That name, as the first word of a request; of a subcommand its container's. */
struct slice command_word(const struct command *c);

/* All commands that clients know, in order of registration (containers, not their subcommands);
 * index < command_count(). */
unsigned command_count(void);
const struct command *command_at(unsigned index);
/* Number of ids in use (subcommands included) and the command of an id. */
unsigned command_id_count(void);
const struct command *command_by_id(unsigned id);
/* True when `argc` fits the arity. */
static inline bool command_arity_fits(const struct command *c, int argc)
{
    return c->arity >= 0 ? argc == c->arity : argc >= -c->arity;
}
/* Whether finding the command's keys or channels asks a module: with the keyspace lock in exclusive
 * mode, or not at all. */
static inline bool command_asks_module(const struct command *c)
{
    return c->extra && (c->extra->find_keys || c->extra->find_channels);
}

/* Names of flag bits 0.. in COMMAND INFO's order and spelling, NULL-terminated ("" is never shown);
 * of category bits. */
extern const char *const command_flag_names[];
extern const char *const *const command_category_names;
/* The bit of a category's name, 0 when unknown. */
uint32_t command_category_of(struct slice name);
/* Adds a category of a module's, and gives its bit: *taken when there is one of that name, else 0
 * when there is no room. Given back, its name stays, since users' rules may tell it, and whoever
 * adds it again has it. World. */
uint32_t command_category_add(const char *name, bool *taken) MUST_CHECK;
void command_category_give_back(uint32_t categories);
/* Forgets those. Shutdown. */
void command_category_teardown(void);

/* A key found in a request. */
struct key_place {
    int index;      /* in argv */
    uint32_t flags; /* enum key_flag */
};
/* The key that stands there. */
static inline struct slice key_place_name(const struct key_place *place, const struct slice *argv)
{
    struct slice text = argv[place->index];
    const char *dot =
        place->flags & KEY_OF_PATH && text.len > 0 ? memchr(text.ptr, '.', text.len) : NULL;
    return dot ? slice_of(text.ptr, (size_t)(dot - text.ptr)) : text;
}
/* Finds the keys of a request: the one extractor that execution, ACL, COMMAND GETKEYS and cluster
 * routing use. Never looks beyond argv[argc-1]. Stores up to `max` places and returns how many
 * there are in all; -1 when the arguments are not valid for the command's specs (the handler then
 * finds the same fault, before it touches a key). Shard channels are found as well, with
 * KEY_NOT_KEY. A count of keys that is 0 finds none. */
int command_find_keys(const struct command *c, const struct slice *argv, int argc,
                      struct key_place *places, int max);

#endif
