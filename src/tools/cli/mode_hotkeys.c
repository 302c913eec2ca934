/* --hotkeys: see modes.h. */
#include <stdio.h>

#include "tools/cli/modes.h"
#include "tools/cli/top.h"
#include "tools/cli/walk.h"

/* So many are listed. */
#define HOTKEYS_MAX 16

/* A line of progress after so many keys. */
#define HOTKEYS_PROGRESS_KEYS 1000000

static void visit(struct walk *w, const struct walk_key *key)
{
    struct top *top = w->context;
    unsigned long long counter = key->frequency.number;
    if (counter > 0 && top_offer(top, counter, key->name, key->len, NULL)) {
        struct text name;
        text_init(&name);
        text_append_quoted(&name, key->name, key->len);
        printf("[%05.2f%%] Hot key '%s' found so far with counter %llu\n", w->percent, name.data,
               counter);
        text_deinit(&name);
    }
    if (w->sampled % HOTKEYS_PROGRESS_KEYS == 0) {
        printf("[%05.2f%%] Sampled %llu keys so far\n", w->percent, w->sampled);
    }
}

static void print_summary(const struct walk *w, const struct top *top, bool interrupted)
{
    printf("\n-------- summary -------\n\n");
    if (interrupted) {
        printf("[%05.2f%%] ", w->percent);
    }
    printf("Sampled %llu keys in the keyspace!\n", w->sampled);
    for (size_t i = 0; i < top->count; i++) {
        struct text name;
        text_init(&name);
        text_append_quoted(&name, top->list[i].name, top->list[i].len);
        printf("hot key found with counter: %llu\tkeyname: %s\n", top->list[i].figure, name.data);
        text_deinit(&name);
    }
}

int mode_hotkeys(struct session *s)
{
    struct top top;
    top_init(&top, HOTKEYS_MAX);
    struct walk_plan plan = {.frequency = true, .cursor = "0"};
    struct walk w = {.visit = visit, .context = &top};
    printf("\n# Scanning the entire keyspace to find hot keys as well as\n"
           "# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n"
           "# per 100 SCAN commands (not usually needed).\n\n");
    fflush(stdout);
    enum walk_end end = walk_run(s, &plan, &w);
    if (end != WALK_FAILED) {
        print_summary(&w, &top, end == WALK_INTERRUPTED);
    }
    top_deinit(&top);
    return end == WALK_FAILED ? 1 : 0;
}
