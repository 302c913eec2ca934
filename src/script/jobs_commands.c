/* KEYDB.CRON. */
#include "engine/propagate.h"
#include "script/script.h"
#include "value/job.h"

#include "base/num.h"
#include "keyspace/access.h"

#include <string.h>

/* The arguments behind name and mode. */
struct cron_arguments {
    struct job_terms terms;
    int script; /* where it stands */
};

/* "single" or "repeat". In logs of ours the user stands behind a colon, where he is not `default`:
 * a client is himself. */
static bool parse_mode(struct call *c, struct job_terms *t)
{
    struct slice mode = c->argv[2];
    const char *colon = c->session->internal ? memchr(mode.ptr, ':', mode.len) : NULL;
    t->user = c->session->internal ? SLICE("default") : slice_cstr(c->session->user);
    if (colon) {
        size_t len = (size_t)(colon - mode.ptr);
        t->user = slice_of(colon + 1, mode.len - len - 1);
        mode = slice_of(mode.ptr, len);
    }
    t->single = slice_equal_nocase(mode, "single");
    if (!t->single && !slice_equal_nocase(mode, "repeat")) {
        reply_syntax_error(c->reply);
        return false;
    }
    return true;
}

/* One number is the interval; two are the start and the interval. */
static bool parse_times(struct call *c, struct cron_arguments *a)
{
    struct job_terms *t = &a->terms;
    int64_t second;
    t->start_ms = c->now_ms;
    a->script = 4;
    if (!call_arg_i64_error(c, 3, &t->interval_ms, "ERR missing expire time")) {
        return false;
    }
    if (c->argc > 5 && num_parse_i64(c->argv[4], &second)) {
        t->start_ms = t->interval_ms;
        t->interval_ms = second;
        a->script = 5;
    }
    if (t->interval_ms <= 0) {
        reply_error(c->reply, "ERR interval must be positive");
        return false;
    }
    if (!job_times_are_valid(t->start_ms, t->interval_ms)) {
        reply_error(c->reply, "ERR value is out of range");
        return false;
    }
    return true;
}

static bool parse_words(struct call *c, struct cron_arguments *a)
{
    int64_t keys = 0;
    int words = a->script + 2;
    a->terms.script = c->argv[a->script];
    if (c->argc < words) {
        return true;
    }
    if (!call_arg_i64(c, words - 1, &keys)) {
        return false;
    }
    if (keys < 0 || keys > c->argc - words) {
        reply_error(c->reply, "ERR Missing arguments or numkeys is too big");
        return false;
    }
    a->terms.words = c->argv + words;
    a->terms.word_count = (uint32_t)(c->argc - words);
    a->terms.key_count = (uint32_t)keys;
    return true;
}

/* With its start and its user, which whoever replays it cannot know. */
static void propagate_job(struct call *c, const struct job_terms *t) REQUIRES(keyspace_lock)
{
    struct propagate_draft draft = {0};
    struct buf mode = {0};
    buf_append_cstr(&mode, t->single ? "single" : "repeat");
    if (!slice_equal(t->user, SLICE("default"))) {
        buf_append_char(&mode, ':');
        buf_append_slice(&mode, t->user);
    }
    propagate_add(&draft, command_word(c->cmd));
    propagate_add(&draft, c->argv[1]);
    propagate_add(&draft, buf_slice(&mode));
    propagate_add_number(&draft, t->start_ms);
    propagate_add_number(&draft, t->interval_ms);
    propagate_add(&draft, t->script);
    propagate_add_number(&draft, t->key_count);
    for (uint32_t i = 0; i < t->word_count; i++) {
        propagate_add(&draft, t->words[i]);
    }
    propagate_draft_instead(c, &draft);
    buf_deinit(&mode);
}

WRITE_COMMAND(cron_command)
{
    struct cron_arguments a = {.script = 0};
    struct keyref ref;
    if (!parse_mode(c, &a.terms) || !parse_times(c, &a) || !parse_words(c, &a)) {
        return;
    }
    if (!c->session->internal) {
        job_terms_catch_up(&a.terms, c->now_ms);
    }
    call_open(c, 0, &ref);
    struct entry *e = job_create(ref.key.name, &a.terms);
    if (!c->session->internal) {
        job_of(e)->due_ms = a.terms.start_ms + a.terms.interval_ms;
    }
    entry_set_clock(e, access_initial(c->now_ms));
    db_put(&ref, e);
    if (unlikely(propagate_on)) {
        propagate_job(c, &a.terms);
    }
    call_changed(c, &ref, EVENT_GENERIC, "cron");
    reply_ok(c->reply);
}

const struct command_row job_commands[] = {
    {.name = "keydb.cron",
     .run = cron_command,
     .arity = -5,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_SCRIPTING,
     .keys = "i1/r0,1,0/OW+UPDATE",
     .group = "scripting",
     .since = "6.3.0",
     .summary = "Makes a job: a Lua script that runs once or again and again, with the rights of "
                "the caller.",
     .complexity = "O(N) where N is the number of keys and arguments, O(log J) of jobs",
     .args = "name <SINGLE|REPEAT> [start-milliseconds] interval-milliseconds script [numkeys [key "
             "[key ...]] [arg [arg ...]]]"},
    {.name = NULL},
};
