/* What is known of each type of value: see kinds.h. */
#include "tools/cli/kinds.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/text.h"

static const struct {
    const char *name;
    const char *command;
    const char *unit;
} known[] = {
    {"list", "LLEN", "items"},     {"hash", "HLEN", "fields"},  {"stream", "XLEN", "entries"},
    {"string", "STRLEN", "bytes"}, {"set", "SCARD", "members"}, {"zset", "ZCARD", "members"},
};

static struct kind *add(struct kinds *k, const char *name, size_t len)
{
    struct kind *kind = tool_calloc(1, sizeof(*kind));
    memcpy(kind->name, name, len);
    kind->unit = "?";
    k->list[k->count++] = kind;
    return kind;
}

void kinds_init(struct kinds *k)
{
    k->count = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct kind *kind = add(k, known[i].name, strlen(known[i].name));
        kind->command = known[i].command;
        kind->unit = known[i].unit;
    }
}

void kinds_deinit(struct kinds *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->list[i]->length.biggest_name);
        free(k->list[i]->memory.biggest_name);
        free(k->list[i]);
    }
    k->count = 0;
}

/* Names are shown: nothing in them may act on a terminal. */
static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (name[i] <= ' ' || name[i] > '~') {
            return false;
        }
    }
    return len > 0 && len <= KIND_NAME_MAX;
}

struct kind *kinds_find(struct kinds *k, const char *name, size_t len)
{
    if (!is_name(name, len)) {
        return NULL;
    }
    for (size_t i = 0; i < k->count; i++) {
        if (strncmp(k->list[i]->name, name, len) == 0 && k->list[i]->name[len] == '\0') {
            return k->list[i];
        }
    }
    return k->count < KINDS_MAX ? add(k, name, len) : NULL;
}

unsigned long long sum_bounded(unsigned long long a, unsigned long long b)
{
    return a > ULLONG_MAX - b ? ULLONG_MAX : a + b;
}

bool measure_add(struct measure *m, unsigned long long size, const char *name, size_t len)
{
    m->sum = sum_bounded(m->sum, size);
    if (size <= m->biggest) {
        return false;
    }
    m->biggest = size;
    free(m->biggest_name);
    m->biggest_name = tool_copy(name, len);
    m->biggest_len = len;
    return true;
}
