/* Classes of told commands: each write command of the registry is in the table, or is of class
 * order on purpose and listed here; members and keys are where the table says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "engine/command.h"
#include "active/effect.h"
#include "active/all_commands.h"

#include <stdio.h>
#include <string.h>

/* Their result depends on what was there; their key is the first word behind the name. */
static const char *const of_order[] = {
    "append",
    "setrange",
    "setbit",
    "bitfield",
    "incrbyfloat",
    "hincrbyfloat",
    "lset",
    "linsert",
    "ltrim",
    "xsetid",
    "keydb.cron",
    /* Told to peers in other forms, and never themselves. */
    "setnx",
    "getex",
    "hsetnx",
    "lpushx",
    "rpushx",
    "keydb.hrename",
    "keydb.nhset",
    "pfdebug",
    "expire",
    "pexpire",
    "expireat",
    "expirememberat",
    "expiremember",
    "hexpire",
    "hpexpire",
    "hexpireat",
    "eval",
    "evalsha",
    "fcall",
};

static bool is_of_order(const char *name)
{
    for (size_t i = 0; i < sizeof(of_order) / sizeof(of_order[0]); i++) {
        if (strcmp(name, of_order[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void test_every_write_has_a_class(void **state)
{
    (void)state;
    int missing = 0, writes = 0;
    all_commands_register();
    for (unsigned i = 0; i < command_count(); i++) {
        const struct command *c = command_at(i);
        bool write = c->flags & CMD_WRITE;
        for (unsigned s = 0; s < c->subcommand_count; s++) {
            write = write || c->subcommands[s].flags & CMD_WRITE;
        }
        writes += write;
        bool listed = effect_is_listed(slice_cstr(c->row->name));
        if (write && listed == is_of_order(c->row->name)) {
            print_error("%s: %s\n", c->row->name, listed ? "listed twice" : "has no class");
            missing++;
        }
    }
    assert_true(writes > 80);
    assert_int_equal(missing, 0);
    for (size_t i = 0; i < sizeof(of_order) / sizeof(of_order[0]); i++) {
        assert_non_null(command_find(slice_cstr(of_order[i])));
    }
    command_teardown();
}

#define WORDS_MAX 10

/* Pieces as text: class, key, members; one behind the other. */
static const char *effects_of(const char *line)
{
    static const char *const classes[] = {"order", "whole",   "assign",  "add",   "state",
                                          "flush", "keyless", "library", "untold"};
    static char text[400];
    struct slice argv[WORDS_MAX], words[EFFECT_WORDS];
    const struct slice *command;
    struct effect p;
    int argc = 0;
    size_t at = 0;
    while (*line && argc < WORDS_MAX) {
        size_t len = strcspn(line, " ");
        argv[argc++] = slice_of(line, len);
        line += len + (line[len] == ' ');
    }
    text[0] = '\0';
    for (int i = 0; effect_of(argc, argv, i, &p); i++) {
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? "; " : "", classes[p.class]);
        for (int k = 0; k < p.count; k++) {
            struct slice m = effect_member(&p, argv, k);
            struct slice scope = effect_scope(&p, argv);
            at += (size_t)snprintf(text + at, sizeof(text) - at, " %.*s%s%.*s", (int)scope.len,
                                   scope.ptr, scope.len ? "/" : "", (int)m.len, m.ptr);
        }
        if (p.flags & EFFECT_INEXACT) {
            at += (size_t)snprintf(text + at, sizeof(text) - at, " inexact");
        }
        int words_count = effect_command(&p, argc, argv, words, &command);
        if (p.values >= 0) {
            at += (size_t)snprintf(text + at, sizeof(text) - at, " (");
            for (int k = 0; k < words_count; k++) {
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", k ? " " : "",
                                       (int)command[k].len, command[k].ptr);
            }
            at += (size_t)snprintf(text + at, sizeof(text) - at, ")");
        } else {
            assert_true(command == argv && words_count == argc);
        }
    }
    return text;
}

static void test_effects(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"SET k v", "whole"},
        {"set k v PXAT 1", "whole"},
        {"SET k v KEEPTTL", "order"},
        {"SET k v NX", "order"},
        {"DEL k l", "whole (DEL k); whole (DEL l)"},
        {"MSET k v l w", "whole (SET k v); whole (SET l w)"},
        {"MSET k v l", "whole (SET k v)"},
        {"HSET k f 1 g 2", "assign f g"},
        {"HDEL k f g", "assign f g"},
        {"HPEXPIREAT k 5 FIELDS 1 f", "assign f"},
        {"HPEXPIREAT k 5 FIELDS 2 f g", "order"},
        {"HPEXPIREAT k 5", "order"},
        {"HPERSIST k FIELDS 1 f", "assign f"},
        {"HPERSIST k FIELDS 2 f g", "order"},
        {"ZADD k 1 a 2 b", "assign a b"},
        {"ZADD k NX 1 a", "order"},
        {"ZADD k GT CH 1 a", "order"},
        {"KEYDB.XINSERT k 5-0 f v", "assign 5-0"},
        {"KEYDB.XPEND k g 5-0 0 1", "assign"},
        {"KEYDB.XPEND k g 5-0 0 1 c 5-0 6-0", "assign g/c g/5-0 g/6-0"},
        {"XACK k g 5-0 6-0", "assign g/5-0 g/6-0"},
        {"XACK k", "order"},
        {"KEYDB.XPEND k", "order"},
        {"KEYDB.EXPIRED k 5", "order"},
        {"KEYDB.EXPIRED k 5 m", "assign m"},
        {"KEYDB.EXPIRED k", "untold"},
        {"KEYDB.EXPIRED k 5 m n", "untold"},
        {"XADD k 5-0 f v", "untold"},
        {"PEXPIREAT k 5", "assign"},
        {"PEXPIREAT k 5 NX", "order"},
        {"PERSIST k", "assign"},
        {"PERSIST k m", "assign m"},
        {"PERSIST k m n", "order"},
        {"XGROUP CREATE k g 0", "order"},
        {"PEXPIREMEMBERAT k m 5", "assign m"},
        {"INCRBY k 5", "add"},
        {"HINCRBY k f 5", "add f"},
        {"ZINCRBY k 5 m", "add m"},
        {"ZINCRBY k -5.0 m", "add m"},
        {"ZINCRBY k 9007199254740991 m", "add m"},
        {"ZINCRBY k 9007199254740992 m", "add m inexact"},
        {"ZINCRBY k 0.5 m", "add m inexact"},
        {"ZINCRBY k -inf m", "add m inexact"},
        {"ZINCRBY k x m", "add m inexact"},
        {"ZINCRBY k 5", "order"},
        {"FLUSHALL", "flush"},
        {"PUBLISH c m", "keyless"},
        {"RENAME k l", "untold"},
        {"LPUSH k a", "order a"},
        {"RPUSH k a b", "order a b"},
        {"RPUSH k", "order"},
        {"LREM k 1 a", "order a"},
        {"LREM k -1 a", "order a"},
        {"LREM k 0 a", "order a"},
        {"LREM k 2 a", "order"},
        {"NEVERHEARD k", "order"},
        {"LPUSH", ""},
        {"DEL", ""},
        {"HSET", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(effects_of(cases[i][0]), cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_write_has_a_class),
        cmocka_unit_test(test_effects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
