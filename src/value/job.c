/* See job.h. A job is one block: the struct, its words, and the bytes of all texts. */
#include "value/job.h"

#include "base/mem.h"

#include <openssl/evp.h>

bool job_times_are_valid(int64_t start_ms, int64_t interval_ms)
{
    return start_ms >= -JOB_TIME_MAX_MS && start_ms <= JOB_TIME_MAX_MS && interval_ms > 0 &&
           interval_ms <= JOB_TIME_MAX_MS;
}

void job_terms_catch_up(struct job_terms *terms, int64_t now_ms)
{
    if (!terms->single && terms->start_ms + terms->interval_ms < now_ms) {
        terms->start_ms = now_ms - terms->interval_ms;
    }
}

struct job *job_of(const struct entry *e)
{
    assert(entry_type(e) == VALUE_CRON && entry_encoding(e) == ENCODING_JOB);
    return entry_pointer(e);
}

int64_t job_next_ms(const struct job *job, int64_t now_ms)
{
    const struct job_terms *t = &job->terms;
    int64_t first_ms = t->start_ms + t->interval_ms;
    if (t->single || first_ms > now_ms) {
        return first_ms;
    }
    return t->start_ms + ((now_ms - t->start_ms) / t->interval_ms + 1) * t->interval_ms;
}

static struct slice put_text(char **at, struct slice text)
{
    struct slice copy = slice_of(*at, text.len);
    if (text.len > 0) {
        memcpy(*at, text.ptr, text.len);
    }
    *at += text.len;
    return copy;
}

static struct job *make(const struct job_terms *terms)
{
    size_t bytes = sizeof(struct job) + terms->word_count * sizeof(struct slice) + terms->user.len +
                   terms->script.len;
    for (uint32_t i = 0; i < terms->word_count; i++) {
        bytes += terms->words[i].len;
    }
    struct job *job = mem_alloc(bytes);
    struct slice *words = (struct slice *)(job + 1);
    char *at = (char *)(words + terms->word_count);
    *job = (struct job){.terms = *terms, .bytes = bytes};
    job->terms.words = words;
    job->terms.user = put_text(&at, terms->user);
    job->terms.script = put_text(&at, terms->script);
    for (uint32_t i = 0; i < terms->word_count; i++) {
        words[i] = put_text(&at, terms->words[i]);
    }
    assert(at == (char *)job + bytes);
    return job;
}

struct entry *job_create(struct slice key, const struct job_terms *terms)
{
    assert(job_times_are_valid(terms->start_ms, terms->interval_ms));
    assert(terms->key_count <= terms->word_count);
    return entry_create_pointer(key, VALUE_CRON, ENCODING_JOB, make(terms), ENTRY_NO_EXPIRY);
}

/* ---- operations ---- */

static void destroy(struct entry *e)
{
    mem_free(job_of(e));
}

static void *copy(const struct entry *e)
{
    return make(&job_of(e)->terms);
}

static size_t memory(const struct entry *e, size_t samples)
{
    (void)samples;
    return mem_size_class(job_of(e)->bytes);
}

static size_t free_effort(const struct entry *e)
{
    (void)e;
    return 1;
}

static const char *encoding_name(const struct entry *e)
{
    (void)e;
    return "raw";
}

static void add_text(EVP_MD_CTX *sum, struct slice text)
{
    uint64_t len = text.len;
    EVP_DigestUpdate(sum, &len, sizeof(len));
    EVP_DigestUpdate(sum, text.ptr, text.len);
}

static void digest(const struct entry *e, uint8_t result[20])
{
    const struct job_terms *t = &job_of(e)->terms;
    const int64_t numbers[] = {t->single, t->start_ms, t->interval_ms, t->key_count};
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    assert(sum);
    EVP_DigestInit_ex(sum, EVP_sha1(), NULL);
    EVP_DigestUpdate(sum, numbers, sizeof(numbers));
    add_text(sum, t->user);
    add_text(sum, t->script);
    for (uint32_t i = 0; i < t->word_count; i++) {
        add_text(sum, t->words[i]);
    }
    EVP_DigestFinal_ex(sum, result, NULL);
    EVP_MD_CTX_free(sum);
}

const struct value_ops job_ops = {.name = "cron",
                                  .destroy = destroy,
                                  .copy = copy,
                                  .memory = memory,
                                  .free_effort = free_effort,
                                  .encoding = encoding_name,
                                  .digest = digest};
