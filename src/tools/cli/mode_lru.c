/* --lru-test: see modes.h.
 *
 * Keys "lru:N" are written and asked for by turns, few of them often: the key that fills the cache
 * and the one that is looked for are drawn from the same power law, which gives about four fifths
 * of the requests to one fifth of the keys. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "tools/cli/modes.h"

/* Commands a pipeline. */
#define LRU_PIPELINE 250

/* How strongly the law prefers low numbers. */
#define LRU_ALPHA 6.2

#define LRU_VALUE_BYTES 5

/* A report each */
#define LRU_PERIOD_MS 1000

struct lru {
    struct session *s;
    long long hits;
    long long misses;
    struct text out;
};

/* 1 to `max`: the inverse of the law's distribution function, turned round, so that 1 is the most
 * frequent. */
static long long draw_key(long long max)
{
    double r = (double)(rand_u64() >> 11) / 9007199254740992.0; /* 2^53: [0, 1) */
    double x = (double)max * pow(r, 1 / (LRU_ALPHA + 1));       /* [0, max), mostly high */
    long long key = max - (long long)x;
    return key < 1 ? 1 : key; /* rounding */
}

static void put_command(struct lru *l, bool write)
{
    char key[32];
    snprintf(key, sizeof(key), "lru:%lld", draw_key(l->s->o->lru_keys));
    text_append_format(&l->out, "*%d\r\n$3\r\n%s\r\n$%zu\r\n%s\r\n", write ? 3 : 2,
                       write ? "SET" : "GET", strlen(key), key);
    if (write) {
        char value[LRU_VALUE_BYTES];
        for (size_t i = 0; i < sizeof(value); i++) {
            value[i] = (char)('A' + rand_below(58));
        }
        text_append_format(&l->out, "$%d\r\n%.*s\r\n", LRU_VALUE_BYTES, LRU_VALUE_BYTES, value);
    }
}

/* One pipeline. False when it failed, which is reported. A full server refuses to write: that is
 * what the policy noeviction does, and reads go on. */
static bool run_pipeline(struct lru *l, bool write)
{
    struct link *link = l->s->link;
    text_clear(&l->out);
    for (int i = 0; i < LRU_PIPELINE; i++) {
        put_command(l, write);
    }
    enum link_status status = link_send_bytes(link, l->out.data, l->out.len);
    for (int i = 0; status == LINK_OK && i < LRU_PIPELINE; i++) {
        struct reply *reply = NULL;
        status = link_read(link, -1, &reply);
        if (status != LINK_OK) {
            break;
        }
        bool refused = reply->type == REPLY_ERROR && !write;
        if (refused) {
            fprintf(stderr, "%s\n", reply->text);
        } else if (reply->type == REPLY_PUSH) {
            i--;
        } else if (!write) {
            l->misses += reply->type == REPLY_NIL;
            l->hits += reply->type != REPLY_NIL;
        }
        reply_destroy(&reply);
        if (refused) {
            return false;
        }
    }
    if (status != LINK_OK) {
        session_report_failure(l->s);
    }
    return status == LINK_OK;
}

static void print_row(const struct lru *l, long long elapsed_ms)
{
    long long gets = l->hits + l->misses;
    double share = gets > 0 ? 100.0 / (double)gets : 0;
    printf("%lld Gets/sec | Hits: %lld (%.2f%%) | Misses: %lld (%.2f%%)\n",
           gets * 1000 / (elapsed_ms > 0 ? elapsed_ms : 1), l->hits, (double)l->hits * share,
           l->misses, (double)l->misses * share);
    fflush(stdout);
}

int mode_lru_test(struct session *s)
{
    struct lru l = {.s = s, .hits = 0, .misses = 0};
    text_init(&l.out);
    bool good = true;
    while (good) {
        long long start_ms = (long long)(clock_mono_us() / 1000);
        l.hits = 0;
        l.misses = 0;
        while (good && (long long)(clock_mono_us() / 1000) - start_ms < LRU_PERIOD_MS) {
            good = run_pipeline(&l, true) && run_pipeline(&l, false);
        }
        if (good) {
            print_row(&l, (long long)(clock_mono_us() / 1000) - start_ms);
        }
    }
    text_deinit(&l.out);
    return 1;
}
