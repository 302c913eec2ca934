/* The keys with the largest figures, largest first; of equal ones the first that came stands first,
 * and a later one does not drive it out.
 *
 * Owns: copies of the keys' names. State: plain value of one thread. */
#ifndef TOOLS_CLI_TOP_H
#define TOOLS_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>

struct top_entry {
    unsigned long long figure;
    char *name; /* a zero byte follows */
    size_t len;
    const void *tag; /* the caller's */
};

struct top {
    struct top_entry *list;
    size_t count;
    size_t max;      /* so many are kept */
    size_t capacity; /* of `list`, which grows as needed */
};

/* Keeps at most `max`. */
void top_init(struct top *t, size_t max);
void top_deinit(struct top *t);

/* Takes the key in if it is large enough; whether it was. */
bool top_offer(struct top *t, unsigned long long figure, const char *name, size_t len,
               const void *tag);

#endif
