/* See sides.h. */
#include "sides.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_CHARS 100

void side_set_up(struct side *s, size_t bytes, unsigned broken)
{
    memset(s, 0, sizeof(*s));
    origins_init(&s->origins);
    for (int i = 1; i <= SIDE_ORIGINS; i++) {
        struct origin_id id = {.epoch = 1};
        memset(id.node, 'a' + i, sizeof(id.node));
        uint16_t index = origins_enter(&s->origins, &id);
        assert(index == i);
        (void)index;
    }
    s->model.origins = &s->origins;
    s->merge = (struct merge){
        .origins = &s->origins,
        .window = window_create(&s->origins, bytes),
        .conflicts = conflicts_create(0, 1),
        .executor = &model_executor,
        .context = &s->model,
        .broken = broken,
    };
}

void side_tear_down(struct side *s)
{
    window_destroy(&s->merge.window);
    conflicts_destroy(&s->merge.conflicts);
    origins_deinit(&s->origins);
}

void side_put_words(struct buf *out, const char *line, side_word_fn stands_for, void *context)
{
    struct buf words = {0};
    int count = 0;
    char copy[LINE_MAX_CHARS], *word, *rest = copy;
    snprintf(copy, sizeof(copy), "%s", line);
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        char text[SIDE_WORD_MAX];
        bool replaced = stands_for && stands_for(word, text, context);
        unit_put_word(&words, slice_cstr(replaced ? text : word));
        count++;
    }
    buf_printf(out, "*%d\r\n", count);
    buf_append_slice(out, buf_slice(&words));
    buf_deinit(&words);
}
