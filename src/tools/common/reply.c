/* A server's reply as a tree: see reply.h. */
#include "tools/common/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void reply_init(struct reply *r)
{
    memset(r, 0, sizeof(*r));
    r->type = REPLY_NIL;
}

void reply_deinit(struct reply *r)
{
    for (size_t i = 0; i < r->count; i++) {
        reply_deinit(&r->items[i]);
    }
    free(r->items);
    free(r->text);
    reply_init(r);
}

void reply_destroy(struct reply **r)
{
    if (*r != NULL) {
        reply_deinit(*r);
        free(*r);
        *r = NULL;
    }
}

bool reply_is_aggregate(enum reply_type type)
{
    return type >= REPLY_ARRAY;
}

bool reply_text_is(const struct reply *r, const char *text)
{
    if (r->type != REPLY_STATUS && r->type != REPLY_STRING && r->type != REPLY_VERBATIM) {
        return false;
    }
    assert(r->text != NULL);
    return r->len == strlen(text) && strncasecmp(r->text, text, r->len) == 0;
}

const struct reply *reply_map_get(const struct reply *map, const char *key)
{
    if (map->type != REPLY_MAP && map->type != REPLY_ARRAY) {
        return NULL;
    }
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (reply_text_is(&map->items[i], key)) {
            return &map->items[i + 1];
        }
    }
    return NULL;
}
