/* See gate.h. */
#include "engine/gate.h"

#include "engine/memory_limit.h"
#include "engine/transaction.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Atomic uint32_t gate_word;

static const char loading_refusal[] = "LOADING Redis is loading the dataset in memory";

static const char save_refusal[] =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    "disk. Commands that may modify the data set are disabled, because this instance is configured "
    "to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error "
    "option). "
    "Please check the Redis logs for details about the RDB error.";

static const char readonly_refusal[] = "READONLY You can't write against a read only replica.";

static const char stale_refusal[] =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

static const char replicas_refusal[] = "NOREPLICAS Not enough good replicas to write.";

void gate_set(enum gate gate, bool shut)
{
    /* Release: who sees the gate open sees what was loaded behind it. */
    if (shut) {
        atomic_fetch_or_explicit(&gate_word, (uint32_t)gate, memory_order_release);
    } else {
        atomic_fetch_and_explicit(&gate_word, ~(uint32_t)gate, memory_order_release);
    }
}

/* Texts by errno, made when first wanted: refused calls point to them for some time. */
#define AOF_ERRORS 256
#define AOF_REFUSAL_BYTES 128
static char aof_refusals[AOF_ERRORS][AOF_REFUSAL_BYTES];
static _Atomic int aof_error;

void gate_set_aof(int error)
{
    error = error < 0 || error >= AOF_ERRORS ? EIO : error;
    char *text = aof_refusals[error];
    if (error && !*text) {
        snprintf(text, AOF_REFUSAL_BYTES, "MISCONF Errors writing to the AOF file: %s",
                 strerror(error));
    }
    if (error) { /* else who has just found the gate shut still asks why */
        atomic_store_explicit(&aof_error, error, memory_order_release);
    }
    gate_set(GATE_AOF_FAILED, error != 0);
}

const char *gate_aof_refusal(void)
{
    return aof_refusals[atomic_load_explicit(&aof_error, memory_order_acquire)];
}

/* Texts that modules have given: few, since they stand in their code. */
#define MODULE_TEXTS 32
#define MODULE_TEXT_BYTES 256
static char module_texts[MODULE_TEXTS][MODULE_TEXT_BYTES] = {
    "BUSY Redis is busy running a module command."};
static _Atomic unsigned module_text;

void gate_set_module_text(const char *text)
{
    char wanted[MODULE_TEXT_BYTES];
    unsigned at = 0;
    if (text) {
        snprintf(wanted, sizeof(wanted), "BUSY %s", text);
        while (at < MODULE_TEXTS && *module_texts[at] && strcmp(module_texts[at], wanted) != 0) {
            at++;
        }
        at = at < MODULE_TEXTS ? at : 0;
        if (!*module_texts[at]) {
            memcpy(module_texts[at], wanted, sizeof(wanted));
        }
    }
    atomic_store_explicit(&module_text, at, memory_order_release);
}

const char *gate_busy_refusal(void)
{
    uint32_t shut = atomic_load_explicit(&gate_word, memory_order_relaxed);
    if (shut & GATE_MODULE) {
        return module_texts[atomic_load_explicit(&module_text, memory_order_acquire)];
    }
    if (shut & GATE_SCRIPT) {
        return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
               "NOSAVE.";
    }
    return shut & GATE_FUNCTION ? "BUSY Redis is busy running a script. You can only call FUNCTION "
                                  "KILL or SHUTDOWN NOSAVE."
                                : NULL;
}

const char *gate_write_refusal(const struct session *s)
{
    uint32_t shut = atomic_load_explicit(&gate_word, memory_order_acquire);
    if (s->internal) {
        return NULL;
    }
    if (shut & GATE_AOF_FAILED) {
        return gate_aof_refusal();
    }
    if (shut & GATE_SAVE_FAILED) {
        return save_refusal;
    }
    if (shut & GATE_FEW_REPLICAS) {
        return replicas_refusal;
    }
    if (shut & GATE_MERGING) {
        return loading_refusal;
    }
    return shut & GATE_READONLY ? readonly_refusal : NULL;
}

const char *gate_stale_refusal(const struct session *s)
{
    uint32_t shut = atomic_load_explicit(&gate_word, memory_order_acquire);
    return shut & GATE_STALE && !s->internal ? stale_refusal : NULL;
}

static const char *refusal_of(const struct call *c, uint32_t flags, uint32_t shut)
{
    if (c->session->internal) {
        return NULL;
    }
    if (unlikely(shut & GATE_BUSY) && !(c->cmd->flags & CMD_ALLOW_BUSY)) {
        /* A script of the log that is loaded is told as the loading to whom that concerns. */
        bool loads = shut & GATE_LOADING && !(flags & CMD_LOADING);
        return loads ? loading_refusal : gate_busy_refusal();
    }
    if (shut & GATE_MEMORY && memory_limit_concerns(c, flags)) {
        return memory_limit_refusal;
    }
    bool hears_of_disk = flags & CMD_WRITE || c->cmd->row->is_probe;
    if (shut & GATE_SAVE_FAILED && hears_of_disk) {
        return save_refusal;
    }
    if (shut & GATE_AOF_FAILED && hears_of_disk) {
        return gate_aof_refusal();
    }
    if (shut & GATE_FEW_REPLICAS && flags & CMD_WRITE) {
        return replicas_refusal;
    }
    if (shut & GATE_READONLY && flags & CMD_WRITE) {
        return readonly_refusal;
    }
    if (shut & GATE_MERGING && flags & CMD_WRITE) {
        return loading_refusal;
    }
    uint32_t queued = c->cmd->row->transaction == TRANSACTION_RUNS ? flags : 0;
    if (shut & GATE_STALE && (!(flags & CMD_STALE) || queued & CMD_SOME_NOT_STALE)) {
        return stale_refusal;
    }
    if (shut & GATE_LOADING && (!(flags & CMD_LOADING) || queued & CMD_SOME_NOT_LOADING)) {
        return loading_refusal;
    }
    if (shut & GATE_LOADING_ASIDE && flags & CMD_NO_ASYNC_LOADING) {
        return loading_refusal;
    }
    return NULL;
}

const char *gate_refusal(const struct call *c)
{
    return gate_refusal_as(c, transaction_flags(c));
}

const char *gate_refusal_as(const struct call *c, uint32_t flags)
{
    return refusal_of(c, flags, atomic_load_explicit(&gate_word, memory_order_acquire));
}

const char *gate_refusal_midway(const struct call *c)
{
    uint32_t shut = atomic_load_explicit(&gate_word, memory_order_acquire);
    /* A script or a module that runs has the lock: the call's turn comes after it. */
    shut &= ~(uint32_t)(GATE_MEMORY | GATE_BUSY);
    return refusal_of(c, transaction_flags(c), shut);
}

const char *gate_refusal_again(const struct call *c)
{
    uint32_t shut = atomic_load_explicit(&gate_word, memory_order_acquire);
    shut &= GATE_MEMORY | GATE_SAVE_FAILED | GATE_AOF_FAILED | GATE_FEW_REPLICAS | GATE_READONLY;
    return refusal_of(c, c->cmd->flags, shut);
}
