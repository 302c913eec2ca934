/* Reasons why whole classes of commands are refused for a while: a data set is being loaded, saving
 * fails. One word that is 0 nearly always and is looked at before each command. State: atomic. */
#ifndef ENGINE_GATE_H
#define ENGINE_GATE_H

#include "engine/call.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum gate {
    GATE_LOADING = 1 << 0,      /* lets in commands with CMD_LOADING */
    GATE_SAVE_FAILED = 1 << 1,  /* keeps writes and probes (command.h) out: a save has failed, and
                                   stop-writes-on-bgsave-error is on */
    GATE_SCRIPT = 1 << 2,       /* a script runs for long: lets in commands with CMD_ALLOW_BUSY */
    GATE_FUNCTION = 1 << 3,     /* the same of a function */
    GATE_MEMORY = 1 << 4,       /* keeps out what may need memory (memory_limit.h) */
    GATE_AOF_FAILED = 1 << 5,   /* keeps writes and probes out: they could not be made durable */
    GATE_FEW_REPLICAS = 1 << 6, /* keeps writes out (min-replicas-to-write) */
    GATE_READONLY = 1 << 7,     /* keeps writes out: a replica */
    GATE_STALE = 1 << 8,        /* a replica without its primary: lets in commands with CMD_STALE */
    GATE_LOADING_ASIDE = 1 << 9, /* a data set is loaded beside the one that is served: keeps out
                                    commands with CMD_NO_ASYNC_LOADING */
    GATE_MERGING = 1 << 10,      /* keeps writes out: a peer's data set is being merged, and
                                    allow-write-during-load is off */
    GATE_MODULE = 1 << 11,       /* as GATE_SCRIPT, of a module's command that has yielded */
    GATE_BUSY = GATE_SCRIPT | GATE_FUNCTION | GATE_MODULE,
};

extern _Atomic uint32_t gate_word;

/* Shuts a gate, or opens it. Any thread. */
void gate_set(enum gate gate, bool shut);
/* What GATE_MODULE says, behind "BUSY "; it is kept forever, NULL and more of them than some are
 * the usual text. Before the gate is shut, by a holder of the keyspace lock in exclusive mode. */
void gate_set_module_text(const char *text);
/* Shuts GATE_AOF_FAILED because of an errno, or opens it (0). The AOF's thread. */
void gate_set_aof(int error);
/* What GATE_AOF_FAILED says, or said last: an error text that lives forever. */
const char *gate_aof_refusal(void);
/* Why the prepared call must not run now, an error text that lives forever; NULL when it may. An
 * EXEC is asked about what it would run. */
const char *gate_refusal(const struct call *c);
/* The same as if these were the flags of the call's command (command.h, flags_of). */
const char *gate_refusal_as(const struct call *c, uint32_t flags);
/* The same of one that goes on in slices: what it has taken of memory is its own, so memory that is
 * short does not end it. */
const char *gate_refusal_midway(const struct call *c);
/* The same of one that has waited for keys and is run again: Redis 7.2 looks then once more
 * at what may be written. What is loaded or merged, or runs for long, is not looked at: it has
 * changed the keys. */
const char *gate_refusal_again(const struct call *c);
/* Why nothing that writes may run now, in the same way; NULL when it may. */
const char *gate_write_refusal(const struct session *s);
/* Why nothing may run that must not see a replica's old data (replica-serve-stale-data no), in the
 * same way; NULL when it may. */
const char *gate_stale_refusal(const struct session *s);
/* Why nothing may run beside a script that takes long, in the same way; NULL when there is none. */
const char *gate_busy_refusal(void);
/* True when some gate is shut: then gate_refusal decides. */
static inline bool gate_any(void)
{
    return unlikely(atomic_load_explicit(&gate_word, memory_order_relaxed) != 0);
}
/* True while a data set is being loaded, in place of the one that is served or beside it. */
static inline bool gate_is_loading(void)
{
    return atomic_load_explicit(&gate_word, memory_order_acquire) &
           (GATE_LOADING | GATE_LOADING_ASIDE);
}

#endif
