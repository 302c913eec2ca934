/* Sessions: who calls. */
#include "engine/session.h"

#include "base/mem.h"
#include "engine/acl.h"
#include "engine/auth.h"
#include "engine/transaction.h"

#include <assert.h>
#include <stdatomic.h>

/* Ids start at 1 as Redis's do: 0 means "no client" in CLIENT KILL and tracking redirections. */
static _Atomic uint64_t last_id;

/* What a new session and one after RESET have in common. */
static void session_start(struct session *s)
{
    s->db_index = 0;
    s->proto = 2;
    acl_start_session(s);
    s->no_touch = s->muted = false;
}

void session_init(struct session *s, uint64_t id)
{
    memset(s, 0, sizeof(*s));
    s->id = id;
    session_start(s);
}

void session_init_internal(struct session *s)
{
    session_init(s, 0);
    s->internal = true;
    acl_start_internal(s);
}

void session_deinit(struct session *s)
{
    auth_note_change(s);
    transaction_destroy(s);
    mem_free(s->name);
    mem_free(s->lib_name);
    mem_free(s->lib_ver);
    memset(s, 0, sizeof(*s));
}

void session_reset(struct session *s)
{
    /* The library's name and version still describe the program behind the connection: they stay.
     */
    auth_note_change(s);
    mem_free(s->name);
    s->name = NULL;
    session_start(s);
}

bool session_set_name(struct session *s, struct slice name)
{
    /* Names stand between blanks in CLIENT LIST. */
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] < '!' || name.ptr[i] > '~') {
            return false;
        }
    }
    mem_free(s->name);
    s->name = name.len > 0 ? mem_dup(name.ptr, name.len) : NULL;
    return true;
}

uint64_t session_next_id(void)
{
    return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}
