/* INFO's sections: each folder registers its own; server/ orders them. State: immutable after boot.
 */
#ifndef ENGINE_INFO_H
#define ENGINE_INFO_H

#include "base/buf.h"

#include <stdbool.h>

struct info_section {
    const char *name;  /* lower case: "server", "clients" ... */
    const char *title; /* "Server" */
    bool in_default;   /* shown by INFO without arguments */
    /* Appends "field:value\r\n" lines. No lock held; takes what it needs. */
    void (*write)(struct buf *out);
};

/* Adds fields to the section of that name, which is made when it is new. Sections appear in order
 * of registration, and several writers of one section in order as well. Boot. */
void info_register(const struct info_section *section);
/* Appends the sections that `words` ask for ("default", "all", "everything" or names; none:
 * default). */
void info_write(struct buf *out, const struct slice *words, int count);
/* Boot: who appends sections that come and go (those of modules), behind the others: whether there
 * are any (any thread), and the writing of those that `words`, at least one, ask for; `first`:
 * nothing stands before. With the keyspace lock in exclusive mode, or not at all. NULL: nobody. */
struct info_guests {
    bool (*exist)(void);
    void (*write)(struct buf *out, const struct slice *words, int count, bool first);
    /* What they have to say of a crash, piece by piece. In a child of the process that crashes,
     * which may end amid this, or stand still. */
    void (*report)(void (*write)(const char *bytes, size_t len));
};
void info_set_guests(const struct info_guests *guests);
/* Whether these words may ask for such sections ("modules", "everything", names that are no section
 * of the server's): info_write then must not be called with the lock in shared mode. */
bool info_asks_guests(const struct slice *words, int count);
/* The same for the report of a crash: false when there is nobody who would write. A handler of
 * signals may call them. */
bool info_has_report(void);
void info_report(void (*write)(const char *bytes, size_t len));
/* Forgets all sections. Shutdown. */
void info_teardown(void);

#endif
