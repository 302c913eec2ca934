/* Commands whose reply, or whose copy of an argument, finds no memory: an error and nothing else.
 */
#include "commands/caller.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"
#include "ds/table.h"
#include "long.h"

#include <string.h>

#define LARGE_BYTES ((size_t)2 << 20)

static const char *const refused = "-OOM no memory for a reply of this length\r\n";

static void test_large_members_in_replies(void **state)
{
    (void)state;
    static const char *const lines[] = {"smembers set",     "srandmember set -3",
                                        "lrange list 0 -1", "zrange zset 0 -1",
                                        "hkeys hash",       "sunion set other"};
    char *large = mem_calloc(1, LARGE_BYTES);
    memset(large, 'x', LARGE_BYTES);
    struct slice text = slice_of(large, LARGE_BYTES);
    caller_run_args(3, (struct slice[]){SLICE("sadd"), SLICE("set"), text});
    caller_run_args(3, (struct slice[]){SLICE("rpush"), SLICE("list"), text});
    caller_run_args(4, (struct slice[]){SLICE("zadd"), SLICE("zset"), SLICE("1"), text});
    caller_run_args(4, (struct slice[]){SLICE("hset"), SLICE("hash"), text, SLICE("v")});
    caller_run("sadd other small");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        caller_refuse_above(1 << 20);
        assert_string_equal(caller_run(lines[i]), refused);
        /* What needs little has it. */
        assert_string_equal(caller_run("smembers other"), "*1\r\n$5\r\nsmall\r\n");
        caller_refuse_above(SIZE_MAX);
        assert_true(strlen(caller_run(lines[i])) > LARGE_BYTES);
    }
    caller_refuse_above(1 << 20);
    assert_string_equal(caller_run("spop set"), refused);
    caller_refuse_above(SIZE_MAX);
    assert_string_equal(caller_run("exists set"), ":0\r\n");
    mem_free(large);
}

/* ---- All types, as their twins ---- */

/* The seam's limit. Arguments are shorter, or they would not even arrive. */
#define LIMIT_BYTES ((size_t)1 << 20)
#define ARGUMENT_BYTES ((size_t)600 << 10)
#define STEPS 6000
#define COMMAND_WORDS 12

/* What commands look like: %l, %s, %z, %h, %x are keys of lists, sets, sorted sets, hashes and
 * streams, %e an element, %n a small number, %i a stream ID that is greater than those before. None
 * depends on chance or on a clock. */
static const char *const forms[] = {
    "rpush %l %e %e",
    "lpush %l %e",
    "linsert %l before %e %e",
    "lset %l %n %e",
    "lrem %l 1 %e",
    "ltrim %l 0 30",
    "lpop %l",
    "rpoplpush %l %l",
    "lmove %l %l left right",
    "lmove %l %l right right",
    "sadd %s %e %e",
    "smove %s %s %e",
    "srem %s %e",
    "sinterstore %s %s %s",
    "sunionstore %s %s %s",
    "sdiffstore %s %s %s",
    "zadd %z %n %e %n %e",
    "zincrby %z %n %e",
    "zrem %z %e",
    "zunionstore %z 2 %z %s",
    "zinterstore %z 2 %z %z",
    "zdiffstore %z 2 %z %z",
    "zrangestore %z %z 0 20",
    "zremrangebyrank %z 20 -1",
    "hset %h %e %e",
    "hdel %h %e",
    "hincrby %h %n 5",
    "hsetnx %h %e %e",
    "xadd %x %i %e %e",
    "xadd %x %i a %e b %e",
    "xtrim %x maxlen 6",
    "xdel %x %n-1",
    "copy %l %l replace",
    "copy %s %s replace",
    "copy %z %z replace",
    "copy %h %h replace",
    "copy %x %x replace",
    "sort %s alpha store %l",
    "sort %l by nosort get # store %l",
    "geoadd %z %n %n %e",
    "geosearchstore %z %z fromlonlat 5 5 byradius 5000 km",
    "smembers %s",
    "lrange %l 0 -1",
    "zrange %z 0 -1",
    "hgetall %h",
    "xrange %x - +",
    "sunion %s %s",
    "zunion 2 %z %z",
    "del %l",
    "del %s",
    "del %h",
    "del %x",
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))
static const char key_letters[] = "lszhx";
#define KEYS_A_TYPE 2

struct request {
    int count;
    struct slice words[COMMAND_WORDS];
    bool is_key[COMMAND_WORDS];
    char text[COMMAND_WORDS][32];
};

static char *elements; /* two long runs of letters: elements are parts of them */
static uint64_t next_ms = 1;

/* One of forty texts: most are short, some have ARGUMENT_BYTES. */
static struct slice element(char *text)
{
    uint64_t i = rand_below(40);
    if (i < 6) {
        return slice_of(elements + i, ARGUMENT_BYTES - i * 1000);
    }
    if (i < 12) {
        return slice_of(elements + i, 50 + i * 100);
    }
    return slice_of(text,
                    num_format_i64(text, i < 25 ? (int64_t)i : -(int64_t)(i << (2 * (i - 25)))));
}

static struct slice word_of(char kind, char *text)
{
    size_t len = 0;
    if (kind == 'e') {
        return element(text);
    }
    if (kind == 'i') {
        len = num_format_u64(text, next_ms++);
        memcpy(text + len, "-1", 2);
        return slice_of(text, len + 2);
    }
    if (kind == 'n') {
        return slice_of(text, num_format_u64(text, rand_below(30)));
    }
    text[0] = 'k';
    text[1] = kind;
    text[2] = (char)('0' + rand_below(KEYS_A_TYPE));
    return slice_of(text, 3);
}

static void make_request(struct request *q)
{
    const char *p = forms[rand_below(FORMS)];
    *q = (struct request){0};
    for (; *p; q->count++) {
        size_t len = strcspn(p, " ");
        struct slice word = slice_of(p, len);
        if (*p == '%') {
            char *text = q->text[q->count];
            word = word_of(p[1], text);
            q->is_key[q->count] = strchr(key_letters, p[1]) != NULL;
            memcpy(text + word.len * (word.ptr == text), p + 2, len - 2);
            word.len += word.ptr == text ? len - 2 : 0;
        }
        q->words[q->count] = word;
        p += len + (p[len] == ' ');
    }
}

/* The same request of the twins: keys whose first letter is another. */
static void make_twin(struct request *twin, const struct request *q)
{
    *twin = *q;
    for (int i = 0; i < q->count; i++) {
        if (q->words[i].ptr == q->text[i]) {
            twin->words[i].ptr = twin->text[i];
        }
        if (q->is_key[i]) {
            twin->text[i][0] = 't';
        }
    }
}

/* Every key has its twin's value. */
static void check_twins(void)
{
    for (const char *letter = key_letters; *letter; letter++) {
        for (int i = 0; i < KEYS_A_TYPE; i++) {
            char name[] = {'k', *letter, (char)('0' + i), '\0'};
            char twin_name[] = {'t', *letter, (char)('0' + i), '\0'};
            const struct entry *e = caller_entry(name), *twin = caller_entry(twin_name);
            uint8_t digest[20] = {0}, twin_digest[20] = {0};
            assert_int_equal(e != NULL, twin != NULL);
            if (!e) {
                continue;
            }
            assert_int_equal(entry_type(e), entry_type(twin));
            value_ops_of[entry_type(e)]->digest(e, digest);
            value_ops_of[entry_type(twin)]->digest(twin, twin_digest);
            assert_memory_equal(digest, twin_digest, sizeof(digest));
        }
    }
}

/* Requests are run where large allocations fail, and those that succeed on twins where none does:
 * what is refused has changed nothing. A large allocation that nobody asked for would end a debug
 * build (mem_fail_above). */
static void test_all_types_as_their_twins(void **state)
{
    (void)state;
    struct request q, twin;
    unsigned copies_refused = 0, arguments_refused = 0, done = 0;
    const int steps = UNIT_LONG(STEPS);
    elements = mem_alloc(ARGUMENT_BYTES + 100);
    for (size_t i = 0; i < ARGUMENT_BYTES + 100; i++) {
        elements[i] = (char)('a' + i % 23);
    }
    for (int i = 0; i < steps; i++) {
        make_request(&q);
        make_twin(&twin, &q);
        caller_refuse_above(LIMIT_BYTES);
        const char *reply = caller_run_args(q.count, q.words);
        caller_refuse_above(SIZE_MAX);
        bool is_refused = strncmp(reply, "-OOM", 4) == 0;
        copies_refused += strstr(reply, "OOM no memory for a copy") == reply + 1;
        arguments_refused += strstr(reply, "OOM no memory for arguments") == reply + 1;
        if (!is_refused) {
            caller_run_args(twin.count, twin.words);
            done++;
        }
        if (i % 16 == 0 || is_refused) {
            check_twins();
        }
    }
    assert_true(done > (unsigned)steps / 2 && copies_refused + arguments_refused > 2);
    assert_true(steps < STEPS || (copies_refused > 20 && arguments_refused > 20));
    mem_free(elements);
}

/* ---- What grows with the number of members, not with their length (one thread, and long) ---- */

#if !defined(__SANITIZE_THREAD__)

#define MANY 300000

static void test_many_members(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "zunionstore out 2 many many",   "zinterstore out 2 many many",
        "zrangestore out many 0 -1",     "zunion 2 many many",
        "zrandmember many 36000",        "srandmember smany 36000",
        "hrandfield hmany 60000",        "sort smany limit 0 1",
        "sort many by nosort store out", "sscan smany 0 count 300000",
        "hscan hmany 0 count 300000",    "geosearchstore out many fromlonlat 0 0 byradius 22000 km",
        "copy many out replace",         "copy smany out replace",
        "copy hmany out replace",
    };
    char text[32];
    for (int i = 0; i < MANY; i++) {
        struct slice member = slice_of(text, num_format_i64(text, i));
        caller_run_args(3, (struct slice[]){SLICE("sadd"), SLICE("smany"), member});
        caller_run_args(4, (struct slice[]){SLICE("zadd"), SLICE("many"), member, member});
        caller_run_args(4, (struct slice[]){SLICE("hset"), SLICE("hmany"), member, SLICE("v")});
    }
    caller_run("set out before");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        caller_refuse_above(LIMIT_BYTES);
        assert_int_equal(strncmp(caller_run(lines[i]), "-OOM no memory", 14), 0);
        assert_string_equal(caller_run("get out"), "$6\r\nbefore\r\n");
        caller_refuse_above(SIZE_MAX);
        assert_true(*caller_run(lines[i]) != '-');
        caller_run("set out before");
    }
    caller_run("sadd smany more");
    assert_string_equal(caller_run("scard smany"), ":300001\r\n");
    table_check(value_ops_of[VALUE_SET]->table(caller_entry("smany")));
    caller_run("del many smany hmany out");
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_members_in_replies),
        cmocka_unit_test(test_all_types_as_their_twins),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_many_members),
#endif
    };
    return cmocka_run_group_tests(tests, caller_setup, caller_teardown);
}
