/* The argument notation, taken apart. A tree is written back in a small canonical form:
 * name:type, token before it as TOKEN=, key specs as #n, optional as ?, multiple as +, with its
 * token as ++, parts in (). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commands/syntax.h"
#include "base/buf.h"

static void dump(const struct syntax_tree *t, int index, struct buf *out)
{
    for (int i = index; i >= 0; i = t->nodes[i].next) {
        const struct syntax_node *n = &t->nodes[i];
        if (i != index) {
            buf_append_char(out, ' ');
        }
        if (n->token.len) {
            buf_append_slice(out, n->token);
            buf_append_char(out, '=');
        }
        buf_printf(out, "%s:%s", n->name, n->type);
        if (n->key_spec >= 0) {
            buf_printf(out, "#%d", n->key_spec);
        }
        buf_append_cstr(out, n->flags & SYNTAX_OPTIONAL ? "?" : "");
        buf_append_cstr(out, n->flags & SYNTAX_MULTIPLE ? "+" : "");
        buf_append_cstr(out, n->flags & SYNTAX_MULTIPLE_TOKEN ? "+" : "");
        if (n->child >= 0) {
            buf_append_char(out, '(');
            dump(t, n->child, out);
            buf_append_char(out, ')');
        }
    }
}

static void check(const char *name, const char *group, int specs, const char *args,
                  const char *want)
{
    static struct syntax_tree tree;
    struct command_row row = {.name = name, .group = group, .args = args};
    struct command cmd = {.row = &row, .spec_count = (uint16_t)specs};
    struct buf out = {0};
    assert_true(syntax_parse(&cmd, &tree));
    dump(&tree, tree.first, &out);
    assert_string_equal(buf_cstr(&out), want);
    buf_deinit(&out);
}

static void test_values(void **state)
{
    (void)state;
    check("time", "server", 0, NULL, "");
    check("get", "string", 1, "key", "key:key#0");
    check("rename", "generic", 2, "key newkey", "key:key#0 newkey:key#1");
    check("lcs", "string", 1, "key1 key2 [LEN] [MINMATCHLEN min-match-len]",
          "key1:key#0 key2:key#0 LEN=len:pure-token? MINMATCHLEN=min-match-len:integer?");
    check("keyslot", "cluster", 0, "key", "key:string");
    check("keys", "generic", 0, "pattern", "pattern:pattern");
    check("expireat", "generic", 1, "key unix-time-seconds",
          "key:key#0 unix-time-seconds:unix-time");
    check("incrby", "string", 1, "key increment", "key:key#0 increment:integer");
    check("incrbyfloat", "string", 1, "key increment", "key:key#0 increment:double");
    check("blpop", "list", 1, "key [key ...] timeout", "key:key#0+ timeout:double");
    check("wait", "generic", 0, "numreplicas timeout", "numreplicas:integer timeout:integer");
}

static void test_choices(void **state)
{
    (void)state;
    check("set", "string", 1, "key value [NX|XX] [GET] [EX seconds|PX milliseconds|KEEPTTL]",
          "key:key#0 value:string condition:oneof?(NX=nx:pure-token XX=xx:pure-token) "
          "GET=get:pure-token? expiration:oneof?(EX=seconds:integer PX=milliseconds:integer "
          "KEEPTTL=keepttl:pure-token)");
    check("list", "server", 0, "[FILTERBY MODULE module-name|ACLCAT category|PATTERN pattern]",
          "FILTERBY=module-name_category_pattern:oneof?(MODULE=module-name:string "
          "ACLCAT=category:string PATTERN=pattern:pattern)");
    check("zunion", "sorted_set", 1, "[AGGREGATE SUM|MIN|MAX]",
          "AGGREGATE=sum_min_max:oneof?(SUM=sum:pure-token MIN=min:pure-token "
          "MAX=max:pure-token)");
    check("list", "connection", 0, "[TYPE normal|master]",
          "TYPE=normal_master:oneof?(normal=normal:pure-token master=master:pure-token)");
    check("replicaof", "server", 0, "<host port|NO ONE>",
          "host_port_no_one:oneof(host_port:block(host:string port:integer) "
          "no_one:block(NO=no:pure-token ONE=one:pure-token))");
    check("setinfo", "connection", 0, "<lib-name libname|lib-ver libver>",
          "libname_libver:oneof(lib-name=libname:string lib-ver=libver:string)");
    check("log", "server", 0, "[count|RESET]",
          "count_reset:oneof?(count:integer RESET=reset:pure-token)");
    check("geodist", "geo", 1, "key [m|km]",
          "key:key#0 unit:oneof?(m=m:pure-token km=km:pure-token)");
    check("shutdown", "server", 0, "[[NOSAVE|SAVE] [NOW]|ABORT]",
          "nosave_save_now_abort:oneof?(nosave_save_now:block(nosave_save:oneof?"
          "(NOSAVE=nosave:pure-token SAVE=save:pure-token) NOW=now:pure-token?) "
          "ABORT=abort:pure-token)");
}

static void test_repetitions(void **state)
{
    (void)state;
    check("mset", "string", 1, "key value [key value ...]",
          "key_value:block+(key:key#0 value:string)");
    check("docs", "server", 0, "[command-name [command-name ...]]", "command-name:string?+");
    check("bitfield_ro", "bitmap", 1, "key [GET encoding offset [GET encoding offset ...]]",
          "key:key#0 GET=encoding_offset:block?++(encoding:string offset:integer)");
    check("loadex", "server", 0,
          "path [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]",
          "path:string CONFIG=name_value:block?++(name:string value:string) ARGS=args:string?+");
    check("tracking", "connection", 0, "[PREFIX prefix [PREFIX prefix ...]] [BCAST]",
          "PREFIX=prefix:string?++ BCAST=bcast:pure-token?");
    check("histogram", "server", 0, "[COMMAND [COMMAND ...]]", "COMMAND:string?+");
    check("xack", "stream", 1, "key group ID [ID ...]", "key:key#0 group:string ID:string+");
    check("hexpire", "hash", 1, "key seconds FIELDS numfields field [field ...]",
          "key:key#0 seconds:integer FIELDS=numfields_field:block(numfields:integer "
          "field:string+)");
    check("eval", "scripting", 1, "script numkeys [key [key ...]] [arg [arg ...]]",
          "script:string numkeys:integer key:key#0?+ arg:string?+");
    check("bitcount", "bitmap", 1, "key [start [end [BYTE|BIT]]]",
          "key:key#0 start_end_byte_bit:block?(start:integer end_byte_bit:block?(end:integer "
          "byte_bit:oneof?(BYTE=byte:pure-token BIT=bit:pure-token)))");
}

/* What no row may hold is refused, not misread. */
static void test_malformed(void **state)
{
    (void)state;
    static struct syntax_tree tree;
    static const char *const bad[] = {"key [value ...]", "[]", "<>", "a [b c ...]",
                                      "[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct command_row row = {.name = "x", .group = "string", .args = bad[i]};
        struct command cmd = {.row = &row, .spec_count = 1};
        assert_false(syntax_parse(&cmd, &tree));
    }
    char many[2 * SYNTAX_MAX_NODES + 8];
    size_t len = 0;
    for (int i = 0; i <= SYNTAX_MAX_NODES; i++) {
        many[len++] = 'a';
        many[len++] = ' ';
    }
    many[len] = '\0';
    struct command_row row = {.name = "x", .group = "string", .args = many};
    struct command cmd = {.row = &row};
    assert_false(syntax_parse(&cmd, &tree));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
