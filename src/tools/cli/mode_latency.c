/* --latency and --latency-history: see modes.h. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/modes.h"

/* Between two PINGs. */
#define LATENCY_PAUSE_US 10000

/* How long one period lasts where -i does not say. */
#define LATENCY_ONCE_US 1000000
#define LATENCY_HISTORY_US 15000000

struct latency {
    long long min_ms;
    long long max_ms;
    long long sum_ms;
    long long count;
};

static long long now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void add_sample(struct latency *l, long long ms)
{
    l->min_ms = l->count == 0 || ms < l->min_ms ? ms : l->min_ms;
    l->max_ms = l->count == 0 || ms > l->max_ms ? ms : l->max_ms;
    l->sum_ms += ms;
    l->count++;
}

static void print_result(const struct latency *l, enum output_style style)
{
    double average_ms = l->count > 0 ? (double)l->sum_ms / (double)l->count : 0;
    switch (style) {
    case OUTPUT_TTY:
        printf("min: %lld, max: %lld, avg: %.2f (%lld samples)", l->min_ms, l->max_ms, average_ms,
               l->count);
        break;
    case OUTPUT_CSV:
        printf("%lld,%lld,%.2f,%lld\n", l->min_ms, l->max_ms, average_ms, l->count);
        break;
    case OUTPUT_RAW:
        printf("%lld %lld %.2f %lld\n", l->min_ms, l->max_ms, average_ms, l->count);
        break;
    case OUTPUT_JSON:
    case OUTPUT_QUOTED_JSON:
        printf("{\"min\": %lld, \"max\": %lld, \"avg\": %.2f, \"count\": %lld}\n", l->min_ms,
               l->max_ms, average_ms, l->count);
        break;
    }
    fflush(stdout);
}

/* One period. False when the connection failed. */
static bool measure(struct session *s, const struct words *ping, long long period_us, bool live,
                    struct latency *l)
{
    long long start_us = now_us();
    bool forever = period_us < 0;
    while (forever || now_us() - start_us <= period_us) {
        long long sent_us = now_us();
        struct reply *reply = session_ask(s, ping);
        if (reply == NULL) {
            return false;
        }
        reply_destroy(&reply);
        add_sample(l, (now_us() - sent_us) / 1000);
        if (live) {
            printf("\x1b[0G\x1b[2K"); /* over what the line showed before */
            print_result(l, OUTPUT_TTY);
        }
        struct timespec pause = {0, LATENCY_PAUSE_US * 1000L};
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

int mode_latency(struct session *s)
{
    const struct options *o = s->o;
    bool history = o->mode == MODE_LATENCY_HISTORY;
    bool live = o->output == OUTPUT_TTY;
    long long period_us = history ? LATENCY_HISTORY_US : live ? -1 : LATENCY_ONCE_US;
    if (o->interval_given && o->interval_us > 0 && (history || !live)) {
        period_us = o->interval_us;
    }
    struct words ping = {NULL, 0};
    words_add_strings(&ping, "PING", NULL);
    bool alive = true;
    do {
        struct latency l = {0, 0, 0, 0};
        long long start_us = now_us();
        alive = measure(s, &ping, period_us, live, &l);
        if (alive && history && live) {
            printf(" -- %.2f seconds range\n", (double)(now_us() - start_us) / 1000000);
        } else if (alive && !live) {
            print_result(&l, o->output);
        }
        fflush(stdout);
    } while (alive && history);
    words_deinit(&ping);
    return alive ? 0 : 1;
}
