/* See rdb_value_priv.h, and rdb_format.h for the form. */
#include "persist/rdb_format.h"
#include "persist/rdb_value_priv.h"

#include "value/job.h"

/* Bits of the flags. */
#define JOB_SINGLE 1u

static void write_words(struct rdb_writer *w, const struct slice *words, uint32_t count)
{
    rdb_write_len(w, count);
    for (uint32_t i = 0; i < count; i++) {
        rdb_write_string(w, words[i]);
    }
}

void rdb_save_job(struct rdb_writer *w, const struct entry *e)
{
    const struct job_terms *t = &job_of(e)->terms;
    rdb_write_byte(w, t->single ? JOB_SINGLE : 0);
    rdb_write_string(w, t->user);
    rdb_write_string(w, t->script);
    rdb_write_u64(w, (uint64_t)t->start_ms);
    rdb_write_u64(w, (uint64_t)t->interval_ms);
    write_words(w, t->words, t->key_count);
    write_words(w, t->words + t->key_count, t->word_count - t->key_count);
}

struct job_loader {
    struct rdb_reader *r;
    struct job_terms terms;
    struct buf user, script;
    struct buf text, bytes; /* of one word, of all */
    struct buf words;       /* struct slice of each; ptr is an offset until all are there */
};

static bool read_words(struct job_loader *l, uint32_t *total)
{
    uint64_t count;
    if (!rdb_read_count(l->r, 1, &count)) {
        return false;
    }
    if (count > INT32_MAX / 2) {
        return rdb_fail(l->r, "a job with too many words");
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!rdb_read_string(l->r, &l->text)) {
            return false;
        }
        struct slice word = {(const char *)l->bytes.len, l->text.len};
        buf_append(&l->words, (const char *)&word, sizeof(word));
        buf_append_slice(&l->bytes, buf_slice(&l->text));
    }
    *total += (uint32_t)count;
    return true;
}

static bool read_head(struct job_loader *l, unsigned type)
{
    unsigned flags = 0;
    if (type == RDB_JOB) {
        if (!rdb_read_byte(l->r, &flags) || !rdb_read_string(l->r, &l->user)) {
            return false;
        }
        if (flags > JOB_SINGLE) {
            return rdb_fail(l->r, "a job with unknown flags");
        }
    } else {
        buf_append_cstr(&l->user, "default");
    }
    l->terms.single = flags & JOB_SINGLE;
    return rdb_read_string(l->r, &l->script);
}

static bool read_times(struct job_loader *l)
{
    uint64_t start, interval;
    if (!rdb_read_u64(l->r, &start) || !rdb_read_u64(l->r, &interval)) {
        return false;
    }
    l->terms.start_ms = (int64_t)start;
    l->terms.interval_ms = (int64_t)interval;
    return job_times_are_valid(l->terms.start_ms, l->terms.interval_ms) ||
           rdb_fail(l->r, "a job with times that must not be");
}

static struct entry *build(struct job_loader *l, struct slice key)
{
    struct slice *words = (struct slice *)(void *)l->words.data;
    buf_reserve(&l->bytes, 1);
    for (uint32_t i = 0; i < l->terms.word_count; i++) {
        words[i].ptr = l->bytes.data + (size_t)words[i].ptr;
    }
    l->terms.words = words;
    l->terms.user = buf_slice(&l->user);
    l->terms.script = buf_slice(&l->script);
    return job_create(key, &l->terms);
}

bool rdb_load_job(struct rdb_reader *r, unsigned type, struct slice key, struct entry **e)
{
    struct job_loader l = {.r = r};
    bool ok = read_head(&l, type) && read_times(&l) && read_words(&l, &l.terms.key_count);
    l.terms.word_count = l.terms.key_count;
    ok = ok && read_words(&l, &l.terms.word_count);
    if (ok) {
        *e = build(&l, key);
    }
    buf_deinit(&l.user);
    buf_deinit(&l.script);
    buf_deinit(&l.text);
    buf_deinit(&l.bytes);
    buf_deinit(&l.words);
    return ok;
}
