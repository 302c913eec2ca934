/* --latency-dist: see modes.h.
 *
 * Each period is a row; each cell of it stands for a band of latency and shows, by its colour out
 * of a palette for 256 colours, which share of the period's PINGs fell into it. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "tools/cli/modes.h"

/* Between two PINGs. */
#define DIST_PAUSE_US 10000

/* How long a row takes where -i does not say. */
#define DIST_PERIOD_US 1000000

/* The bands: up to so many microseconds. The last has no end. */
static const struct {
    long long max_us;
    char sign;
} bands[] = {
    {10, '.'},      {125, '-'},     {250, '*'},      {500, '#'},      {1000, '1'},
    {2000, '2'},    {3000, '3'},    {4000, '4'},     {5000, '5'},     {6000, '6'},
    {7000, '7'},    {8000, '8'},    {9000, '9'},     {10000, 'A'},    {20000, 'B'},
    {30000, 'C'},   {40000, 'D'},   {50000, 'E'},    {100000, 'F'},   {200000, 'G'},
    {300000, 'H'},  {400000, 'I'},  {500000, 'J'},   {1000000, 'K'},  {2000000, 'L'},
    {4000000, 'M'}, {8000000, 'N'}, {16000000, 'O'}, {30000000, 'P'}, {60000000, 'Q'},
    {-1, '?'},
};

#define DIST_BANDS (sizeof(bands) / sizeof(bands[0]))

/* From none to all. */
static const int in_color[] = {0,   233, 234, 235, 237, 239, 241, 243, 245, 247,
                               144, 143, 142, 184, 226, 214, 208, 202, 196};
static const int in_grey[] = {0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 249, 251, 253};

struct palette {
    const int *colors;
    int count;
};

static struct palette palette_of(const struct options *o)
{
    return o->mono ? (struct palette){in_grey, sizeof(in_grey) / sizeof(in_grey[0])}
                   : (struct palette){in_color, sizeof(in_color) / sizeof(in_color[0])};
}

static void print_legend(struct palette palette)
{
    printf("---------------------------------------------\n"
           ". - * #          .01 .125 .25 .5 milliseconds\n"
           "1,2,3,...,9      from 1 to 9     milliseconds\n"
           "A,B,C,D,E        10,20,30,40,50  milliseconds\n"
           "F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n"
           "K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n"
           "From 0 to 100%%: ");
    for (int i = 0; i < palette.count; i++) {
        printf("\x1b[48;5;%dm ", palette.colors[i]);
    }
    printf("\x1b[0m\n---------------------------------------------\n");
}

static size_t band_of(long long us)
{
    size_t i = 0;
    while (bands[i].max_us >= 0 && us > bands[i].max_us) {
        i++;
    }
    return i;
}

static void print_row(struct palette palette, const long long counts[DIST_BANDS], long long total)
{
    printf("\x1b[38;5;0m"); /* black signs */
    for (size_t i = 0; i < DIST_BANDS; i++) {
        double share = total > 0 ? (double)counts[i] / (double)total : 0;
        printf("\x1b[48;5;%dm%c", palette.colors[(int)ceil(share * (palette.count - 1))],
               bands[i].sign);
    }
    printf("\x1b[0m\n");
    fflush(stdout);
}

/* One row. False when the connection failed. */
static bool measure(struct session *s, const struct words *ping, long long period_us)
{
    long long counts[DIST_BANDS] = {0};
    long long total = 0;
    uint64_t start_us = clock_mono_us();
    do {
        uint64_t sent_us = clock_mono_us();
        struct reply *reply = session_ask(s, ping);
        if (reply == NULL) {
            return false;
        }
        reply_destroy(&reply);
        counts[band_of((long long)(clock_mono_us() - sent_us))]++;
        total++;
        struct timespec pause = {0, DIST_PAUSE_US * 1000L};
        (void)nanosleep(&pause, NULL);
    } while (clock_mono_us() - start_us <= (uint64_t)period_us);
    print_row(palette_of(s->o), counts, total);
    return true;
}

int mode_latency_dist(struct session *s)
{
    /* redis-cli shows the legend anew as its rows scroll it away: once is enough to look up. */
    long long period_us = s->o->interval_us > 0 ? s->o->interval_us : DIST_PERIOD_US;
    struct words ping = {NULL, 0};
    words_add_strings(&ping, "PING", NULL);
    print_legend(palette_of(s->o));
    while (measure(s, &ping, period_us)) {
    }
    words_deinit(&ping);
    return 1;
}
