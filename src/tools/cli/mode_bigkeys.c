/* --bigkeys and --memkeys: see modes.h. */
#include <stdio.h>

#include "tools/cli/modes.h"
#include "tools/cli/walk.h"

/* A line of progress after so many keys. */
#define BIGKEYS_PROGRESS_KEYS 1000000

struct bigkeys {
    bool memory; /* bytes of memory, not elements */
    struct kinds kinds;
    unsigned long long name_bytes;
};

static struct measure *measure_of(const struct bigkeys *b, struct kind *kind)
{
    return b->memory ? &kind->memory : &kind->length;
}

static const char *unit_of(const struct bigkeys *b, const struct kind *kind)
{
    return b->memory ? "bytes" : kind->unit;
}

static void visit(struct walk *w, const struct walk_key *key)
{
    struct bigkeys *b = w->context;
    const struct walk_figure *figure = b->memory ? &key->memory : &key->length;
    key->kind->keys++;
    b->name_bytes = sum_bounded(b->name_bytes, key->len);
    if (measure_add(measure_of(b, key->kind), figure->number, key->name, key->len)) {
        struct text name;
        text_init(&name);
        text_append_quoted(&name, key->name, key->len);
        printf("[%05.2f%%] Biggest %-6s found so far '%s' with %llu %s\n", w->percent,
               key->kind->name, name.data, figure->number, unit_of(b, key->kind));
        text_deinit(&name);
    }
    if (w->sampled % BIGKEYS_PROGRESS_KEYS == 0) {
        printf("[%05.2f%%] Sampled %llu keys so far\n", w->percent, w->sampled);
    }
}

static double share(unsigned long long part, unsigned long long whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void print_summary(const struct walk *w, const struct bigkeys *b, bool interrupted)
{
    printf("\n-------- summary -------\n\n");
    if (interrupted) {
        printf("[%05.2f%%] ", w->percent);
    }
    printf("Sampled %llu keys in the keyspace!\n"
           "Total key length in bytes is %llu (avg len %.2f)\n\n",
           w->sampled, b->name_bytes, share(b->name_bytes, w->sampled));
    for (size_t i = 0; i < b->kinds.count; i++) {
        struct kind *kind = b->kinds.list[i];
        const struct measure *m = measure_of(b, kind);
        if (m->biggest_name != NULL) {
            struct text name;
            text_init(&name);
            text_append_quoted(&name, m->biggest_name, m->biggest_len);
            printf("Biggest %6s found '%s' has %llu %s\n", kind->name, name.data, m->biggest,
                   unit_of(b, kind));
            text_deinit(&name);
        }
    }
    printf("\n");
    for (size_t i = 0; i < b->kinds.count; i++) {
        struct kind *kind = b->kinds.list[i];
        unsigned long long sum = measure_of(b, kind)->sum;
        printf("%llu %ss with %llu %s (%05.2f%% of keys, avg size %.2f)\n", kind->keys, kind->name,
               sum, unit_of(b, kind), 100 * share(kind->keys, w->sampled), share(sum, kind->keys));
    }
}

int mode_bigkeys(struct session *s)
{
    struct bigkeys b = {.memory = s->o->mode == MODE_MEMKEYS, .name_bytes = 0};
    kinds_init(&b.kinds);
    struct walk_plan plan = {
        .types = true,
        .lengths = !b.memory,
        .memory = b.memory,
        .kinds = &b.kinds,
        .cursor = "0",
    };
    struct walk w = {.visit = visit, .context = &b};
    printf("\n# Scanning the entire keyspace to find biggest keys as well as\n"
           "# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n"
           "# per 100 SCAN commands (not usually needed).\n\n");
    fflush(stdout);
    enum walk_end end = walk_run(s, &plan, &w);
    if (end != WALK_FAILED) {
        print_summary(&w, &b, end == WALK_INTERRUPTED);
    }
    kinds_deinit(&b.kinds);
    return end == WALK_FAILED ? 1 : 0;
}
