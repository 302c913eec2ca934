/* Random programs for real nodes (real.h): what clients write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "real.h"

#include "base/rand.h"

#include <stdio.h>
#include <string.h>

/* k0..k9 are of no type in particular, s0 and s1 streams, with groups g0 and g1; D is a deadline
 * far ahead. */
static const char *const program_lines[] = {
    "set K N",
    "set K N pxat D",
    "append K N",
    "incrby K N",
    "decr K",
    "setrange K N x",
    "setbit K N 1",
    "incrbyfloat K 0.5",
    "mset K N J N",
    "del K",
    "del K J",
    "set K J",
    "hset K M N",
    "hset K M N O N",
    "hdel K M",
    "hdel K M O",
    "hincrby K M N",
    "hsetnx K M N",
    "hincrbyfloat K M 1",
    "hpexpireat K D fields 1 M",
    "hpersist K fields 1 M",
    "hpexpireat K D fields 2 M O",
    "hpersist K fields 2 M O",
    "sadd K M",
    "sadd K M O",
    "srem K M",
    "srem K M O",
    "spop K",
    "zadd K N M",
    "zadd K N M N O",
    "zadd K gt N M",
    "zincrby K N M",
    "zincrby K 0.1 M",
    "zincrby K 0.7 M",
    "zrem K M",
    "rpush K N",
    "lpush K N M",
    "lrem K 1 N",
    "linsert K before N M",
    "lset K 0 N",
    "ltrim K 0 5",
    "pfadd K M N",
    "xadd K N-N M N",
    "xdel K N-N",
    "xadd S * M N",
    "xadd S * M N",
    "xadd S * M N O N",
    "xadd S N-N M N",
    "xadd S maxlen 5 * M N",
    "xadd S maxlen ~ 5 * M N",
    "xdel S N-N",
    "xtrim S maxlen 4",
    "xgroup create S G 0 mkstream",
    "xgroup create S G $ mkstream",
    "xgroup createconsumer S G M",
    "xreadgroup group G M count 2 streams S >",
    "xreadgroup group G M count 2 streams S >",
    "xreadgroup group G M noack count 1 streams S >",
    "xreadgroup group G M count 2 streams S 0",
    "xack S G N-N",
    "xautoclaim S G M 0 0 count 2",
    "xautoclaim S G M 0 0 count 1 justid",
    "xclaim S G M 0 N-N force",
    "xsetid S 9999999999999-1",
    "pexpireat S D",
    "pexpireat K D",
    "persist K",
    "pexpirememberat K M D",
    "persist K M",
    "pexpire K 100000000",
    "expire K 100000",
    "hset K M N",
    "sadd K M",
    "zadd K N M",
    "incrby K N",
    "rpush K M",
    "getdel K",
    "getset K N",
    "set K N keepttl",
    "getex K persist",
    "rename K J",
    "renamenx K J",
    "copy K J replace",
    "bitop or K J K",
    "pfmerge K J",
    "smove K J M",
    "rpop K",
    "lpop K 2",
    "lmove K J left right",
    "rpoplpush K J",
    "zpopmin K",
    "zremrangebyrank K 0 0",
    "xtrim K maxlen 2",
};

static const size_t line_count = sizeof(program_lines) / sizeof(program_lines[0]);

/* What a line's keys hold: 's'tring, 'h'ash, 'S'et, 'z'set, 'l'ist, 'x' for streams; 'a'ny. */
static char family_of(const char *line)
{
    static const struct {
        const char *begin;
        char family;
    } families[] = {
        {"rename", 'a'},  {"copy", 'a'}, {"del", 'a'},  {"pexpire", 'a'}, {"expire", 'a'},
        {"persist", 'a'}, {"set", 's'},  {"sadd", 'S'}, {"srem", 'S'},    {"spop", 'S'},
        {"smove", 'S'},   {"h", 'h'},    {"z", 'z'},    {"x", 'x'},       {"pexpireat S", 'x'},
        {"r", 'l'},       {"l", 'l'},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strncmp(line, families[i].begin, strlen(families[i].begin)) == 0) {
            return families[i].family;
        }
    }
    return 's';
}

void real_narrow(struct real_group *g)
{
    static const char families[] = {'s', 'h', 'S', 'z', 'l', 'x'};
    char family = families[rand_below(sizeof(families))];
    for (g->narrow = 0; g->narrow < REAL_NARROW_LINES;) {
        size_t i = rand_below(line_count);
        char of = family_of(program_lines[i]);
        if (of == family || of == 'a') {
            g->narrow_lines[g->narrow++] = i;
        }
    }
}

static void draw_line(const struct real_group *g, char *out, size_t room, const char *pattern)
{
    uint64_t keys = g->narrow ? 2 : 10, members = g->narrow ? 2 : 6;
    size_t at = 0;
    for (const char *c = pattern; *c && at + 24 < room; c++) {
        char text[24] = {*c, '\0'};
        switch (*c) {
        case 'K':
        case 'J':
            snprintf(text, sizeof(text), "k%d", (int)rand_below(keys));
            break;
        case 'S':
        case 'G':
            snprintf(text, sizeof(text), "%c%d", *c == 'S' ? 's' : 'g', (int)rand_below(2));
            break;
        case 'M':
        case 'O':
            snprintf(text, sizeof(text), "m%d", (int)rand_below(members));
            break;
        case 'N':
            snprintf(text, sizeof(text), "%d", (int)rand_below(g->narrow ? 3 : 9) + 1);
            break;
        case 'D':
            snprintf(text, sizeof(text), "41024448%05d", (int)rand_below(4));
            break;
        default:
            break;
        }
        at += (size_t)snprintf(out + at, room - at, "%s", text);
    }
}

void real_write_something(struct real_group *g, int node)
{
    char text[4][128];
    const char *lines[4];
    int count = rand_below(4) ? 1 : 1 + (int)rand_below(4);
    for (int i = 0; i < count; i++) {
        size_t n =
            g->narrow ? g->narrow_lines[rand_below(REAL_NARROW_LINES)] : rand_below(line_count);
        char line[100];
        draw_line(g, line, sizeof(line), program_lines[n]);
        snprintf(text[i], sizeof(text[i]), "@%d %s", (int)rand_below(REAL_DBS), line);
        lines[i] = text[i];
    }
    real_run(g, node, (int)rand_below(REAL_DBS), count, lines);
}
