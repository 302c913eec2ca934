/* See enveloped.h. */
#include "repl/enveloped.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/transaction.h"
#include "keyspace/db.h"
#include "keyspace/expire.h"
#include "repl/replica.h"

#include <string.h>

/* Authors with a transaction open at once: KeyDB's groups are of a few nodes. */
#define OPEN_MAX 32
/* One who has said nothing for so long amid a transaction, while others went on, has died there: he
 * comes back under another name. */
#define SILENT_MS 10000

/* A transaction that is open. Its session stays when it has ended, for the next one. */
struct open_transaction {
    struct session session;
    char author[ENVELOPE_UUID_CHARS];
    bool is_open;
    int db;
    int64_t begun_ms; /* by the clock of the one who is followed; 0: he did not say */
};

static struct {
    _Atomic bool on;
    struct parser inner; /* of what is in envelopes */
    struct envelope_authors authors;
    struct open_transaction *open[OPEN_MAX]; /* made as they are needed */
    int open_count;                          /* that are open */
    int64_t clock_ms; /* the one who is followed is at least so late; 0: unknown */
} here;

/* A stretch that has not come whole: how far it was looked at, behind its MULTI. */
static struct {
    bool on;
    struct parser parser;
    size_t at, wanted;
    int64_t heard_ms; /* when last somebody of those said something (monotonic) */
    int count;
    char authors[OPEN_MAX][ENVELOPE_UUID_CHARS];
} ahead;

static int first_free(void)
{
    int i = 0;
    while (i < OPEN_MAX && here.open[i] && here.open[i]->is_open) {
        i++;
    }
    return i;
}

bool enveloped_is_on(void)
{
    return here.on;
}

static void close_unknowing(struct replica *r, void *context UNUSED)
{
    if (!r->knows_envelopes) {
        atomic_store(&r->closing, true);
    }
}

void enveloped_set(bool on)
{
    if (on && !here.on) {
        log_notice("The primary is an active replica of KeyDB: what it tells in envelopes "
                   "(RREPLAY) is followed");
        here.on = true;
        replicas_each(close_unknowing, NULL);
        feeds_wake();
    }
    here.on = on;
}

static void forget_ahead(void)
{
    if (ahead.on) {
        parser_deinit(&ahead.parser);
    }
    memset(&ahead, 0, sizeof(ahead));
}

void enveloped_reset(void)
{
    for (int i = 0; i < OPEN_MAX && here.open[i]; i++) {
        session_deinit(&here.open[i]->session);
        mem_free(here.open[i]);
        here.open[i] = NULL;
    }
    here.open_count = 0;
    here.clock_ms = 0;
    expire_set_told_clock(0);
    parser_deinit(&here.inner);
    parser_init(&here.inner);
    forget_ahead();
}

void enveloped_begin_history(void)
{
    here.authors.count = 0;
}

/* ---- looking ahead ---- */

static int find_ahead(struct slice author)
{
    for (int i = 0; i < ahead.count; i++) {
        if (memcmp(ahead.authors[i], author.ptr, ENVELOPE_UUID_CHARS) == 0) {
            return i;
        }
    }
    return -1;
}

static bool ends(const struct envelope *e)
{
    return envelope_has(e, "exec") || envelope_has(e, "discard");
}

/* What a message does to the transactions that are open. */
static void follow_ahead(const struct envelope *e)
{
    int i = find_ahead(e->author);
    if (i >= 0) {
        ahead.heard_ms = replica_clock_ms();
    }
    if (i < 0 && envelope_has(e, "multi") && ahead.count < OPEN_MAX) {
        memcpy(ahead.authors[ahead.count++], e->author.ptr, ENVELOPE_UUID_CHARS);
    } else if (i >= 0 && ends(e)) {
        ahead.count--;
        memcpy(ahead.authors[i], ahead.authors[ahead.count], ENVELOPE_UUID_CHARS);
    }
}

/* Looks at what has come; true once nobody's transaction is open, or something is wrong, which is
 * found once more when it is run. */
static bool looks_whole(struct slice behind, struct arena *arena)
{
    static const struct parser_limits limits = {INT32_MAX, INT64_MAX / 4, true};
    while (ahead.count > 0) {
        struct request request;
        struct envelope e;
        const char *error;
        size_t consumed = 0;
        if (behind.len < ahead.wanted) {
            return false;
        }
        struct slice rest = slice_of(behind.ptr + ahead.at, behind.len - ahead.at);
        enum parser_result result =
            parser_next(&ahead.parser, &limits, rest, arena, &request, &consumed, &error);
        if (result == PARSER_BIG) { /* as in apply.c */
            ahead.wanted = behind.len + parser_big_missing(&ahead.parser);
            parser_deinit(&ahead.parser);
            parser_init(&ahead.parser);
            return false;
        }
        if (result == PARSER_MORE || result == PARSER_ERROR) {
            return result == PARSER_ERROR;
        }
        ahead.wanted = 0;
        ahead.at += consumed;
        if (result == PARSER_DONE) {
            if (envelope_is(&request)) {
                if (envelope_open(&request, db_count(), &here.inner, arena, &e)) {
                    return true;
                }
                follow_ahead(&e);
            }
            parser_release(&request);
        }
    }
    return true;
}

/* A MULTI while nobody's transaction is open: whether all that belongs to it is here. */
static enum enveloped_result await_whole(const struct envelope *multi, struct slice behind,
                                         struct arena *arena)
{
    if (!ahead.on) {
        ahead.on = true;
        ahead.heard_ms = replica_clock_ms();
        parser_init(&ahead.parser);
        follow_ahead(multi);
    }
    if (looks_whole(behind, arena)) {
        forget_ahead();
        return ENVELOPED_RUN;
    }
    if (replica_clock_ms() - ahead.heard_ms < SILENT_MS) {
        return ENVELOPED_WAIT;
    }
    log_warning("A transaction in the primary's stream has not ended for %d s, and is left out; if "
                "it goes on, everything is fetched anew",
                SILENT_MS / 1000);
    forget_ahead();
    return ENVELOPED_DROP;
}

/* ---- messages ---- */

static struct open_transaction *find_open(struct slice author)
{
    for (int i = 0; i < OPEN_MAX && here.open[i]; i++) {
        if (here.open[i]->is_open &&
            memcmp(here.open[i]->author, author.ptr, ENVELOPE_UUID_CHARS) == 0) {
            return here.open[i];
        }
    }
    return NULL;
}

/* NULL: there are too many. */
static struct open_transaction *open_one(const struct envelope *e)
{
    int i = first_free();
    if (i == OPEN_MAX) {
        return NULL;
    }
    if (!here.open[i]) {
        here.open[i] = mem_calloc(1, sizeof(*here.open[i]));
        session_init_internal(&here.open[i]->session);
    }
    struct open_transaction *t = here.open[i];
    memcpy(t->author, e->author.ptr, ENVELOPE_UUID_CHARS);
    t->is_open = true;
    t->db = t->session.db_index = e->db;
    t->begun_ms = e->sent_ms;
    here.open_count++;
    return t;
}

static enum enveloped_result lose(struct enveloped_message *m, const char *why)
{
    m->why = why;
    return ENVELOPED_LOST;
}

/* What is of a transaction goes to its author's session. */
static enum enveloped_result take_part(struct open_transaction *t, struct enveloped_message *m)
{
    m->session = &t->session;
    m->selects = t->db != m->e.db && !ends(&m->e);
    if (m->selects) {
        t->db = m->e.db;
    }
    if (t->begun_ms > 0) {
        m->now_ms = t->begun_ms; /* a transaction happens at one time */
    }
    return ENVELOPED_RUN;
}

static enum enveloped_result take_multi(struct slice behind, struct arena *arena,
                                        struct enveloped_message *m)
{
    enum enveloped_result result =
        here.open_count > 0 ? ENVELOPED_RUN : await_whole(&m->e, behind, arena);
    if (result != ENVELOPED_RUN) {
        return result;
    }
    struct open_transaction *t = open_one(&m->e);
    return t ? take_part(t, m) : lose(m, "too many transactions are open at once");
}

/* Which session it is for, once it is known to be news. */
static enum enveloped_result take_news(struct slice behind, struct session *plain,
                                       struct arena *arena, struct enveloped_message *m)
{
    struct open_transaction *t = find_open(m->e.author);
    m->now_ms = m->e.sent_ms > 0 ? m->e.sent_ms : clock_wall_us() / 1000;
    if (envelope_has(&m->e, "keydb.mvccrestore")) {
        return lose(m, "it merges another one's data set");
    }
    if (envelope_has(&m->e, "multi")) {
        return t ? lose(m, "a transaction begins within another one")
                 : take_multi(behind, arena, m);
    }
    if (t) {
        return take_part(t, m);
    }
    if (ends(&m->e)) {
        return lose(m, "a transaction ends whose beginning did not come");
    }
    plain->db_index = m->e.db;
    m->session = plain;
    return ENVELOPED_RUN;
}

enum enveloped_result enveloped_take(const struct request *outer, struct slice behind,
                                     struct session *plain, struct arena *arena,
                                     struct enveloped_message *m)
{
    *m = (struct enveloped_message){.session = NULL};
    if (!here.on) {
        enveloped_set(true); /* a replica of ours that follows one: who is followed did not say */
    }
    const char *error = envelope_open(outer, db_count(), &here.inner, arena, &m->e);
    if (error) {
        return lose(m, error);
    }
    if (!envelope_is_news(&here.authors, &m->e)) {
        return ENVELOPED_DROP;
    }
    enum enveloped_result result = take_news(behind, plain, arena, m);
    if (result == ENVELOPED_RUN || result == ENVELOPED_DROP) {
        envelope_note(&here.authors, &m->e);
        here.clock_ms = m->e.sent_ms > here.clock_ms ? m->e.sent_ms : here.clock_ms;
    }
    return result;
}

void enveloped_ran(const struct enveloped_message *m)
{
    struct open_transaction *t = find_open(m->e.author);
    if (t && ends(&m->e)) {
        t->is_open = false;
        here.open_count--;
    }
}

bool enveloped_is_amid(void)
{
    return here.open_count > 0;
}

void enveloped_end_hold(void)
{
    if (here.on && here.clock_ms > 0) {
        expire_set_told_clock(here.clock_ms);
    }
}

void enveloped_keep(void)
{
    for (int i = 0; i < OPEN_MAX && here.open[i]; i++) {
        if (here.open[i]->session.transaction) {
            transaction_keep(&here.open[i]->session);
        }
    }
}
