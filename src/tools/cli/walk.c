/* The walk over the keys: see walk.h. */
#include "tools/cli/walk.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* COUNT of SCAN where --count does not say: large pages cost fewer round trips. With -i, which asks
 * for a gentle walk, it is the server's own. */
#define WALK_COUNT 500
#define WALK_COUNT_GENTLE 10

/* -i pauses after so many pages. */
#define WALK_PAGES_A_PAUSE 100

struct page {
    struct reply *reply; /* of SCAN; NULL: no page */
    struct walk_key *keys;
    size_t count;
    char cursor[24]; /* that it was asked for with */
};

struct march {
    struct session *s;
    const struct walk_plan *plan;
    struct walk *w;
    struct page scanned; /* nothing is known but the names */
    struct page typed;
    bool more;       /* `next` is to be asked for */
    char next[24];   /* cursor */
    struct text out; /* what goes with the next message */
};

static void page_deinit(struct page *p)
{
    reply_destroy(&p->reply);
    free(p->keys);
    memset(p, 0, sizeof(*p));
}

/* ---- questions ---- */

static void put_word(struct text *out, const char *word, size_t len)
{
    text_append_format(out, "$%zu\r\n", len);
    text_append(out, word, len);
    text_append_string(out, "\r\n");
}

/* A command about a key: its words before the key, the key, and its words behind; the lists may be
 * empty and end with NULL. */
static void put_question(struct text *out, const char *const *before, const struct walk_key *key,
                         const char *const *behind)
{
    size_t count = 1;
    for (size_t i = 0; before[i] != NULL; i++) {
        count++;
    }
    for (size_t i = 0; behind[i] != NULL; i++) {
        count++;
    }
    text_append_format(out, "*%zu\r\n", count);
    for (size_t i = 0; before[i] != NULL; i++) {
        put_word(out, before[i], strlen(before[i]));
    }
    put_word(out, key->name, key->len);
    for (size_t i = 0; behind[i] != NULL; i++) {
        put_word(out, behind[i], strlen(behind[i]));
    }
}

static void put_first_questions(struct march *m)
{
    static const char *const type[] = {"TYPE", NULL};
    static const char *const nothing[] = {NULL};
    for (size_t i = 0; m->plan->types && i < m->scanned.count; i++) {
        put_question(&m->out, type, &m->scanned.keys[i], nothing);
    }
}

static void put_last_questions(struct march *m)
{
    static const char *const memory[] = {"MEMORY", "USAGE", NULL};
    static const char *const frequency[] = {"OBJECT", "FREQ", NULL};
    static const char *const nothing[] = {NULL};
    char samples[24];
    snprintf(samples, sizeof(samples), "%lld", m->s->o->memory_samples);
    const char *const options[] = {"SAMPLES", samples, NULL};
    for (size_t i = 0; i < m->typed.count; i++) {
        const struct walk_key *key = &m->typed.keys[i];
        if (m->plan->memory) {
            put_question(&m->out, memory, key, m->s->o->memory_samples >= 0 ? options : nothing);
        }
        if (m->plan->lengths && key->kind->command != NULL) {
            const char *const length[] = {key->kind->command, NULL};
            put_question(&m->out, length, key, nothing);
        }
        if (m->plan->frequency) {
            put_question(&m->out, frequency, key, nothing);
        }
    }
}

static void put_scan(struct march *m)
{
    const struct options *o = m->s->o;
    char count[24];
    long long gentle = o->interval_us > 0 ? WALK_COUNT_GENTLE : WALK_COUNT;
    snprintf(count, sizeof(count), "%lld", o->scan_count > 0 ? o->scan_count : gentle);
    text_append_string(&m->out, o->pattern != NULL ? "*6\r\n" : "*4\r\n");
    put_word(&m->out, "SCAN", 4);
    put_word(&m->out, m->next, strlen(m->next));
    if (o->pattern != NULL) {
        put_word(&m->out, "MATCH", 5);
        put_word(&m->out, o->pattern, o->pattern_len);
    }
    put_word(&m->out, "COUNT", 5);
    put_word(&m->out, count, strlen(count));
}

/* ---- answers ---- */

/* Reads one. NULL: *end says why, and a failure is reported. */
static struct reply *take(struct march *m, enum walk_end *end)
{
    struct reply *reply = NULL;
    enum link_status status;
    do {
        reply_destroy(&reply);
        status = link_read(m->s->link, -1, &reply);
    } while (status == LINK_OK && reply->type == REPLY_PUSH);
    if (status == LINK_OK) {
        return reply;
    }
    *end = status == LINK_INTERRUPTED ? WALK_INTERRUPTED : WALK_FAILED;
    if (status != LINK_INTERRUPTED) {
        session_report_failure(m->s);
    }
    return NULL;
}

__attribute__((format(printf, 1, 2))) static enum walk_end refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return WALK_FAILED;
}

/* The answer to TYPE. The key keeps no kind where it is gone. */
static enum walk_end take_type(struct march *m, struct walk_key *key)
{
    enum walk_end end = WALK_DONE;
    struct reply *reply = take(m, &end);
    if (reply == NULL) {
        return end;
    }
    if (reply->type == REPLY_ERROR) {
        end = refuse("TYPE returned an error: %s", reply->text);
    } else if (reply->type != REPLY_STATUS) {
        struct text name;
        text_init(&name);
        text_append_readable(&name, key->name, key->len);
        end = refuse("Invalid reply for TYPE on key '%s'!", name.data);
        text_deinit(&name);
    } else if (!reply_text_is(reply, "none")) {
        key->kind = kinds_find(m->plan->kinds, reply->text, reply->len);
        end = key->kind != NULL ? WALK_DONE : refuse("Too many types, or none with such a name.");
    }
    reply_destroy(&reply);
    return end;
}

/* The answer to a question about a size. `question` names it in a warning. */
static enum walk_end take_size(struct march *m, const char *question, const struct walk_key *key,
                               struct walk_figure *out)
{
    enum walk_end end = WALK_DONE;
    struct reply *reply = take(m, &end);
    if (reply == NULL) {
        return end;
    }
    out->known = reply->type == REPLY_INTEGER && reply->integer >= 0;
    if (out->known) {
        out->number = (unsigned long long)reply->integer;
    } else {
        struct text name;
        text_init(&name);
        text_append_readable(&name, key->name, key->len);
        fprintf(stderr, "Warning:  %s on '%s' failed (may have changed type)\n", question,
                name.data);
        text_deinit(&name);
    }
    reply_destroy(&reply);
    return WALK_DONE;
}

static enum walk_end take_frequency(struct march *m, struct walk_key *key)
{
    enum walk_end end = WALK_DONE;
    struct reply *reply = take(m, &end);
    if (reply == NULL) {
        return end;
    }
    if (reply->type == REPLY_ERROR) {
        end = refuse("Error: %s", reply->text);
    } else if (reply->type == REPLY_INTEGER && reply->integer >= 0) {
        key->frequency.known = true;
        key->frequency.number = (unsigned long long)reply->integer;
    } else {
        struct text name;
        text_init(&name);
        text_append_quoted(&name, key->name, key->len);
        fprintf(stderr, "Warning: OBJECT freq on '%s' failed (may have been deleted)\n", name.data);
        text_deinit(&name);
    }
    reply_destroy(&reply);
    return end;
}

/* The types of the page; what is gone leaves it. */
static enum walk_end take_first_answers(struct march *m)
{
    struct page *p = &m->scanned;
    size_t kept = 0;
    for (size_t i = 0; m->plan->types && i < p->count; i++) {
        enum walk_end end = take_type(m, &p->keys[i]);
        if (end != WALK_DONE) {
            return end;
        }
        if (p->keys[i].kind != NULL) {
            p->keys[kept++] = p->keys[i];
        }
    }
    p->count = m->plan->types ? kept : p->count;
    return WALK_DONE;
}

static enum walk_end take_last_answers_of(struct march *m, struct walk_key *key)
{
    enum walk_end end = WALK_DONE;
    if (m->plan->memory) {
        end = take_size(m, "MEMORY USAGE", key, &key->memory);
    }
    if (end == WALK_DONE && m->plan->lengths && key->kind->command != NULL) {
        end = take_size(m, key->kind->command, key, &key->length);
    }
    if (end == WALK_DONE && m->plan->frequency) {
        end = take_frequency(m, key);
    }
    return end;
}

/* What was left to know of the page, and the visits. */
static enum walk_end take_last_answers(struct march *m)
{
    struct page *p = &m->typed;
    struct walk *w = m->w;
    if (p->reply == NULL) {
        return WALK_DONE;
    }
    w->percent = walk_percent(w);
    snprintf(w->cursor, sizeof(w->cursor), "%s", p->cursor);
    for (size_t i = 0; i < p->count; i++) {
        enum walk_end end = take_last_answers_of(m, &p->keys[i]);
        if (end != WALK_DONE) {
            return end;
        }
        w->sampled++;
        w->visit(w, &p->keys[i]);
    }
    /* The present page is done with: what follows is where to go on. */
    snprintf(w->cursor, sizeof(w->cursor), "%s",
             m->scanned.reply != NULL ? m->scanned.cursor
             : m->more                ? m->next
                                      : "0");
    if (w->page_done != NULL) {
        w->page_done(w);
    }
    fflush(stdout);
    return WALK_DONE;
}

bool walk_is_page(const struct reply *r)
{
    if (r->type != REPLY_ARRAY || r->count != 2 || r->items[0].type != REPLY_STRING ||
        r->items[0].len == 0 || r->items[0].len > WALK_CURSOR_MAX ||
        strspn(r->items[0].text, "0123456789") != r->items[0].len ||
        r->items[1].type != REPLY_ARRAY) {
        return false;
    }
    for (size_t i = 0; i < r->items[1].count; i++) {
        if (r->items[1].items[i].type != REPLY_STRING) {
            return false;
        }
    }
    return true;
}

static enum walk_end take_scan(struct march *m, struct page *out)
{
    enum walk_end end = WALK_DONE;
    memset(out, 0, sizeof(*out));
    struct reply *reply = m->more ? take(m, &end) : NULL;
    if (reply == NULL) {
        return end;
    }
    if (!walk_is_page(reply)) {
        end = reply->type == REPLY_ERROR   ? refuse("SCAN error: %s", reply->text)
              : reply->type != REPLY_ARRAY ? refuse("Non ARRAY response from SCAN!")
                                           : refuse("Invalid response from SCAN!");
        reply_destroy(&reply);
        return end;
    }
    const struct reply *names = &reply->items[1];
    out->reply = reply;
    out->count = names->count;
    out->keys = tool_calloc(names->count + 1, sizeof(*out->keys));
    for (size_t i = 0; i < names->count; i++) {
        out->keys[i].name = names->items[i].text;
        out->keys[i].len = names->items[i].len;
    }
    memcpy(out->cursor, m->next, sizeof(out->cursor));
    snprintf(m->next, sizeof(m->next), "%s", reply->items[0].text);
    m->more = strcmp(m->next, "0") != 0;
    return WALK_DONE;
}

/* ---- the walk ---- */

double walk_percent(const struct walk *w)
{
    if (w->total == 0) {
        return 0;
    }
    return w->sampled >= w->total ? 100 : 100 * (double)w->sampled / (double)w->total;
}

/* One message out, its answers in; each page moves on by one. */
static enum walk_end step(struct march *m)
{
    if (session_interrupted != 0) {
        return WALK_INTERRUPTED;
    }
    text_clear(&m->out);
    put_last_questions(m);
    put_first_questions(m);
    if (m->more) {
        put_scan(m);
    }
    enum link_status sent =
        m->out.len > 0 ? link_send_bytes(m->s->link, m->out.data, m->out.len) : LINK_OK;
    if (sent != LINK_OK) {
        if (sent != LINK_INTERRUPTED) {
            session_report_failure(m->s);
        }
        return sent == LINK_INTERRUPTED ? WALK_INTERRUPTED : WALK_FAILED;
    }
    struct page next;
    memset(&next, 0, sizeof(next));
    enum walk_end end = take_last_answers(m);
    if (end == WALK_DONE) {
        end = take_first_answers(m);
    }
    if (end == WALK_DONE) {
        end = take_scan(m, &next);
    }
    page_deinit(&m->typed);
    m->typed = m->scanned;
    m->scanned = next;
    return end;
}

static bool ask_total(struct session *s, struct walk *w)
{
    struct words command = {NULL, 0};
    words_add_strings(&command, "DBSIZE", NULL);
    struct reply *reply = session_ask(s, &command);
    words_deinit(&command);
    if (reply == NULL) {
        return false;
    }
    bool good = reply->type == REPLY_INTEGER && reply->integer >= 0;
    if (good) {
        w->total = (unsigned long long)reply->integer;
    } else if (reply->type == REPLY_ERROR) {
        (void)refuse("Couldn't determine DBSIZE: %s", reply->text);
    } else {
        (void)refuse("Non INTEGER response from DBSIZE!");
    }
    reply_destroy(&reply);
    return good;
}

static void rest(long long us)
{
    struct timespec pause = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    (void)nanosleep(&pause, NULL); /* Ctrl-C ends it */
}

enum walk_end walk_run(struct session *s, const struct walk_plan *plan, struct walk *w)
{
    assert(w->visit != NULL && (!plan->lengths || plan->types));
    assert(!plan->types || plan->kinds != NULL);
    struct march m;
    memset(&m, 0, sizeof(m));
    m.s = s;
    m.plan = plan;
    m.w = w;
    m.more = true;
    snprintf(m.next, sizeof(m.next), "%s", plan->cursor);
    snprintf(w->cursor, sizeof(w->cursor), "%s", plan->cursor);
    w->total = 0;
    w->sampled = 0;
    w->percent = 0;
    session_catch_interrupts(s);
    if (!ask_total(s, w)) {
        return WALK_FAILED;
    }
    text_init(&m.out);
    enum walk_end end = WALK_DONE;
    for (unsigned pages = 1;
         end == WALK_DONE && (m.more || m.scanned.reply != NULL || m.typed.reply != NULL);
         pages++) {
        end = step(&m);
        if (end == WALK_DONE && s->o->interval_us > 0 && pages % WALK_PAGES_A_PAUSE == 0) {
            rest(s->o->interval_us);
        }
    }
    page_deinit(&m.scanned);
    page_deinit(&m.typed);
    text_deinit(&m.out);
    return end;
}
