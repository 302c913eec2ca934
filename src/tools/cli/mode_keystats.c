/* --keystats: see modes.h.
 *
 * On a terminal a picture of what is known so far is drawn over and over, and the report over the
 * last of them; elsewhere the report is all there is. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/program.h"
#include "tools/cli/histogram.h"
#include "tools/cli/modes.h"
#include "tools/cli/number.h"
#include "tools/cli/top.h"
#include "tools/cli/walk.h"

/* A new picture so often. */
#define KEYSTATS_PICTURE_MS 250

#define KEYSTATS_BAR_CELLS 60

/* The bands of names' lengths: up to so many bytes. The last takes all. */
static const unsigned long long name_bands[] = {
    32, 256, 64ULL << 10, 1ULL << 20, 16ULL << 20, 128ULL << 20, 512ULL << 20, ULLONG_MAX,
};

#define NAME_BANDS (sizeof(name_bands) / sizeof(name_bands[0]))

struct keystats {
    const struct walk *w;
    bool terminal;
    struct kinds kinds;
    struct top top;
    struct histogram sizes;
    unsigned long long size_sum;
    unsigned long long name_bytes;
    unsigned long long name_bytes_max;
    unsigned long long names[NAME_BANDS];
    long long drawn_ms; /* when the last picture was drawn; 0: none yet */
    size_t lines;       /* it has */
};

/* ---- the report, part by part ---- */

static const char *human(char out[NUMBER_HUMAN_BYTES], double bytes)
{
    number_human_bytes(out, bytes >= (double)LLONG_MAX ? LLONG_MAX : llround(bytes));
    return out;
}

static double share(unsigned long long part, unsigned long long whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void put_progress(const struct keystats *k, struct text *out)
{
    double percent = walk_percent(k->w);
    char size[NUMBER_HUMAN_BYTES];
    if (k->terminal) {
        size_t full = (size_t)(percent / 100 * KEYSTATS_BAR_CELLS);
        text_append_format(out, "%6.2f%% \x1b[32m", percent);
        text_append_fill(out, '|', full);
        text_append_string(out, "\x1b[31m");
        text_append_fill(out, '-', KEYSTATS_BAR_CELLS - full);
        text_append_string(out, "\x1b[39m\n");
    } else {
        text_append_format(out, "%6.2f%% keys scanned\n", percent);
    }
    text_append_format(out, "Keys sampled: %llu\nKeys size:    %s\n\n", k->w->sampled,
                       human(size, (double)k->size_sum));
}

static void put_top(const struct keystats *k, struct text *out)
{
    text_append_format(out, "--- Top %zu key sizes ---\n", k->top.max);
    for (size_t i = 0; i < k->top.count; i++) {
        const struct top_entry *entry = &k->top.list[i];
        const struct kind *kind = entry->tag;
        char size[NUMBER_HUMAN_BYTES];
        text_append_format(out, "%3zu %8s %-10s ", i + 1, human(size, (double)entry->figure),
                           kind->name);
        text_append_quoted(out, entry->name, entry->len);
        text_append_char(out, '\n');
    }
}

static bool is_string(const struct kind *kind)
{
    return strcmp(kind->name, "string") == 0;
}

static void put_biggest(const struct keystats *k, struct text *out)
{
    char size[NUMBER_HUMAN_BYTES];
    text_append_string(out, "\n--- Top size per type ---\n");
    for (size_t i = 0; i < k->kinds.count; i++) {
        const struct kind *kind = k->kinds.list[i];
        if (kind->memory.biggest_name != NULL) {
            text_append_format(out, "%-10s ", kind->name);
            text_append_readable(out, kind->memory.biggest_name, kind->memory.biggest_len);
            text_append_format(out, " is %s\n", human(size, (double)kind->memory.biggest));
        }
    }
    text_append_string(out, "\n--- Top length and cardinality per type ---\n");
    for (size_t i = 0; i < k->kinds.count; i++) {
        const struct kind *kind = k->kinds.list[i];
        if (kind->length.biggest_name == NULL) {
            continue;
        }
        text_append_format(out, "%-10s ", kind->name);
        text_append_readable(out, kind->length.biggest_name, kind->length.biggest_len);
        if (is_string(kind)) {
            text_append_format(out, " has %s\n", human(size, (double)kind->length.biggest));
        } else {
            text_append_format(out, " has %llu %s\n", kind->length.biggest, kind->unit);
        }
    }
}

static void put_percentile(void *context, double percentile, unsigned long long size,
                           unsigned long long count)
{
    char bytes[NUMBER_HUMAN_BYTES];
    text_append_format(context, "%8s %9.4f%% %11llu\n", human(bytes, (double)size), percentile,
                       count);
}

static void put_sizes(const struct keystats *k, struct text *out)
{
    char mean[NUMBER_HUMAN_BYTES];
    char deviation[NUMBER_HUMAN_BYTES];
    text_append_string(out, "\nKey size Percentile Total keys\n"
                            "-------- ---------- -----------\n");
    histogram_percentiles(&k->sizes, put_percentile, out);
    text_append_format(out, "Note: 0.01%% size precision, Mean: %s, StdDeviation: %s\n",
                       human(mean, floor(histogram_mean(&k->sizes))),
                       human(deviation, floor(histogram_deviation(&k->sizes))));
}

static void put_names(const struct keystats *k, struct text *out)
{
    char bytes[NUMBER_HUMAN_BYTES];
    char average[NUMBER_HUMAN_BYTES];
    unsigned long long count = 0;
    text_append_string(out, "\nKey name length Percentile Total keys\n"
                            "--------------- ---------- -----------\n");
    for (size_t i = 0; i < NAME_BANDS; i++) {
        if (k->names[i] == 0) {
            continue;
        }
        count += k->names[i];
        /* The last band that has names ends with the longest of them. */
        unsigned long long end = count == k->w->sampled ? k->name_bytes_max : name_bands[i];
        text_append_format(out, "%15s %9.4f%% %11llu\n", human(bytes, (double)end),
                           100 * share(count, k->w->sampled), count);
    }
    text_append_format(out, "Total key length is %s (%s avg)\n",
                       human(bytes, (double)k->name_bytes),
                       human(average, floor(share(k->name_bytes, k->w->sampled))));
}

static void put_kind(const struct keystats *k, const struct kind *kind, struct text *out)
{
    char size[NUMBER_HUMAN_BYTES];
    char average_size[NUMBER_HUMAN_BYTES];
    char length[64] = "- ";
    char average_length[64] = "- ";
    double average = share(kind->length.sum, kind->keys);
    if (is_string(kind)) {
        (void)human(length, (double)kind->length.sum);
        (void)human(average_length, average);
    } else if (kind->command != NULL) {
        snprintf(length, sizeof(length), "%llu %s", kind->length.sum, kind->unit);
        snprintf(average_length, sizeof(average_length), "%.2f", average);
    }
    text_append_format(
        out, "%-9s %12llu %6.2f%% %8s %8s %18s %11s\n", kind->name, kind->keys,
        100 * share(kind->keys, k->w->sampled), human(size, (double)kind->memory.sum),
        human(average_size, floor(share(kind->memory.sum, kind->keys))), length, average_length);
}

static void put_kinds(const struct keystats *k, struct text *out)
{
    text_append_string(
        out, "\nType        Total keys  Keys % Tot size Avg size  Total length/card Avg ln/card\n"
             "--------- ------------ ------- -------- -------- ------------------ -----------\n");
    for (size_t i = 0; i < k->kinds.count; i++) {
        if (k->kinds.list[i]->keys > 0) {
            put_kind(k, k->kinds.list[i], out);
        }
    }
}

/* ---- drawing ---- */

static size_t count_lines(const struct text *t)
{
    size_t lines = 0;
    for (size_t i = 0; i < t->len; i++) {
        lines += t->data[i] == '\n';
    }
    return lines;
}

/* Cuts lines that are wider than the terminal, but not the bar, whose colours take no cells; all
 * other text is ASCII. */
static void cut_lines(struct text *t, size_t columns)
{
    size_t start = 0;
    for (bool bar = true; start < t->len; bar = false) {
        size_t end = start + (size_t)((char *)memchr(t->data + start, '\n', t->len - start) -
                                      (t->data + start));
        if (!bar && end - start > columns) {
            text_remove(t, start + columns, end - start - columns);
            end = start + columns;
        }
        start = end + 1;
    }
}

/* Prints the lines, each over what stood there. */
static void print_over(const struct text *t)
{
    for (size_t start = 0; start < t->len;) {
        const char *line = t->data + start;
        size_t len = (size_t)((const char *)memchr(line, '\n', t->len - start) - line) + 1;
        printf("\x1b[2K\r");
        fwrite(line, 1, len, stdout);
        start += len;
    }
}

static void draw_picture(struct keystats *k)
{
    struct text picture;
    struct winsize window;
    text_init(&picture);
    put_progress(k, &picture);
    bool sized = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0;
    size_t short_len = picture.len;
    put_top(k, &picture);
    put_biggest(k, &picture);
    if (sized && count_lines(&picture) >= window.ws_row) {
        text_truncate(&picture, short_len); /* more would scroll away from where it is drawn over */
    }
    if (sized && window.ws_col > 0) {
        cut_lines(&picture, window.ws_col);
    }
    k->lines = count_lines(&picture);
    print_over(&picture);
    printf("\x1b[%zuA\r", k->lines);
    fflush(stdout);
    text_deinit(&picture);
}

static void print_report(const struct keystats *k)
{
    struct text report;
    text_init(&report);
    put_progress(k, &report);
    put_top(k, &report);
    put_biggest(k, &report);
    put_sizes(k, &report);
    put_names(k, &report);
    put_kinds(k, &report);
    if (k->terminal) {
        printf("\x1b[J"); /* no rest of a picture between lines that are too long */
        print_over(&report);
    } else {
        fwrite(report.data, 1, report.len, stdout);
    }
    text_deinit(&report);
}

/* ---- the walk ---- */

static void visit(struct walk *w, const struct walk_key *key)
{
    struct keystats *k = w->context;
    size_t band = 0;
    while (key->len > name_bands[band]) {
        band++;
    }
    k->names[band]++;
    k->name_bytes = sum_bounded(k->name_bytes, key->len);
    k->name_bytes_max = key->len > k->name_bytes_max ? key->len : k->name_bytes_max;
    k->size_sum = sum_bounded(k->size_sum, key->memory.number);
    key->kind->keys++;
    (void)measure_add(&key->kind->memory, key->memory.number, key->name, key->len);
    (void)measure_add(&key->kind->length, key->length.number, key->name, key->len);
    (void)top_offer(&k->top, key->memory.number, key->name, key->len, key->kind);
    histogram_add(&k->sizes, key->memory.number);
}

static void page_done(struct walk *w)
{
    struct keystats *k = w->context;
    long long now = (long long)(clock_mono_us() / 1000);
    if (k->terminal && (k->drawn_ms == 0 || now - k->drawn_ms >= KEYSTATS_PICTURE_MS)) {
        k->drawn_ms = now;
        draw_picture(k);
    }
}

static enum walk_end keystats_walk(struct session *s, struct keystats *k, struct walk *w)
{
    struct walk_plan plan = {
        .types = true,
        .lengths = true,
        .memory = true,
        .kinds = &k->kinds,
        .cursor = s->o->cursor,
    };
    printf("\n# Scanning the entire keyspace to find the biggest keys and distribution "
           "information.\n"
           "# Use -i 0.1 to sleep 0.1 sec per 100 SCAN commands (not usually needed).\n"
           "# Use --cursor <n> to start the scan at the cursor <n> (usually after a Ctrl-C).\n"
           "# Use --top <n> to display <n> top key sizes (default is 10).\n"
           "# Ctrl-C to stop the scan.\n\n");
    fflush(stdout);
    enum walk_end end = walk_run(s, &plan, w);
    if (end != WALK_FAILED) {
        print_report(k);
    } else if (k->lines > 0) {
        printf("\x1b[%zuB\r\n", k->lines); /* below the picture */
    }
    if (end == WALK_INTERRUPTED) {
        printf("\nScan interrupted:\n"
               "Use '%s --keystats --cursor %s' to restart from the last cursor.\n",
               program_name(), w->cursor);
    }
    return end;
}

int mode_keystats(struct session *s)
{
    struct keystats k;
    struct walk w = {.visit = visit, .page_done = page_done, .context = &k};
    memset(&k, 0, sizeof(k));
    k.w = &w;
    k.terminal = isatty(STDOUT_FILENO) != 0;
    kinds_init(&k.kinds);
    top_init(&k.top, (size_t)s->o->top);
    histogram_init(&k.sizes);
    enum walk_end end = keystats_walk(s, &k, &w);
    histogram_deinit(&k.sizes);
    top_deinit(&k.top);
    kinds_deinit(&k.kinds);
    return end == WALK_FAILED ? 1 : 0;
}
