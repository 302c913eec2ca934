/* Libraries of functions: FUNCTION and FCALL. A library is Lua code that registers functions when
 * it is loaded; it lives in the functions' interpreter until it is deleted or replaced, and what
 * its functions share among themselves lasts as long. Names of functions are unique over all
 * libraries, in any case of letters. State: keyspace. */
#ifndef SCRIPT_FUNCTIONS_H
#define SCRIPT_FUNCTIONS_H

#include "base/buf.h"
#include "engine/call.h"
#include "script/run.h"
#include "script/script.h"

struct library;

struct function {
    char *name;
    char *description; /* NULL: none */
    unsigned flags;    /* enum script_flag */
    int ref;           /* in the registry */
    struct library *library;
};

struct library {
    char *name;
    char *code; /* with its first line */
    size_t code_len;
    struct function *functions; /* in order of registration */
    int count, capacity;
};

/* Boot, and its reverse. */
void functions_setup(void);
void functions_teardown(void);
/* Adds the figures. Any thread. */
void functions_add_figures(struct script_figures *figures);
uint64_t functions_library_count(void);
uint64_t functions_function_count(void);

/* Compiles and runs the code of a library, which is not among the others yet; NULL with the error's
 * text (without "ERR ") appended. With `new_name` it is not even run when there is a library of
 * that name. What a client brings has half a second for it; what is `trusted`, since a server took
 * it before (files, the primary), as long as a slow machine may need. */
struct library *functions_compile(struct slice code, bool trusted, bool new_name, struct buf *error)
    REQUIRES(keyspace_lock);
/* Takes libraries into the collection, all or none; those of the same names are replaced if
 * `replace`. `flush`: all that were there before go. False with the error's text appended, and the
 * libraries are freed. */
bool functions_adopt_take(struct library **libraries_take, int count, bool replace, bool flush,
                          struct buf *error) MUST_CHECK REQUIRES(keyspace_lock);
/* Frees a library that is in no collection. */
void functions_free(struct library *l) REQUIRES(keyspace_lock);
/* Deletes one; false when there is none of that name. */
bool functions_delete(struct slice name) REQUIRES(keyspace_lock);
/* Forgets all, and makes a new interpreter. */
void functions_flush(void) REQUIRES(keyspace_lock);

/* The function of that name in any case, NULL when there is none. */
const struct function *functions_find(struct slice name) REQUIRES(keyspace_lock);
/* The libraries in order of their names: index < functions_library_count(). */
const struct library *functions_library_at(int index) REQUIRES_SHARED(keyspace_lock);
/* FCALL and FCALL_RO. */
void functions_call(struct call *c, bool read_only) REQUIRES(keyspace_lock);

/* ---- functions_load.c, for functions.c ---- */

/* Adds redis.register_function and what else a library sees while it is loaded: pushes the table of
 * globals for that time. */
void functions_push_load_globals(lua_State *L);
/* Reads the first line; false with the error's text appended. *code is what follows. */
bool functions_read_metadata(struct slice whole, struct library *l, struct slice *code,
                             struct buf *error) MUST_CHECK;
/* Appends the name that the first line gives; false when it gives none. */
bool functions_name_of(struct slice whole, struct buf *name) MUST_CHECK;
/* The library that is being loaded, into which functions register; NULL: none. */
void functions_set_loading(struct library *l);

#endif
