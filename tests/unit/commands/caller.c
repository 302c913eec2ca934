/* See caller.h. */
#include "commands/caller.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "commands/commands.h"
#include "engine/cmdstats.h"
#include "keyspace/access.h"
#include "keyspace/changes.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "resp/limits.h"
#include "value/blob.h"
#include "value/hash.h"
#include "value/set.h"
#include "value/list.h"
#include "value/zset.h"
#include "value/stream.h"

#include <string.h>

#define WORDS_MAX 24
/* Longer arguments stand in blobs of their own, as those of a client do. */
#define BLOB_FROM_BYTES ((size_t)32 << 10)

struct place {
    struct call call;
    struct arena arena;
    struct reply reply;
    struct buf text;
    struct blob *blobs[WORDS_MAX];
};

static struct session session;
static struct place plain, sliced;
static size_t refuse_above = SIZE_MAX;

static void store_initial(const struct option *options)
{
    for (; options->name; options++) {
        option_store_initial(options);
    }
}

static void place_init(struct place *p)
{
    memset(p, 0, sizeof(*p));
    arena_init(&p->arena, 4096);
    reply_init(&p->reply);
}

static void release_blobs(struct place *p)
{
    for (int i = 0; i < WORDS_MAX; i++) {
        if (p->blobs[i]) {
            blob_release(&p->blobs[i]);
        }
    }
}

static void place_deinit(struct place *p)
{
    release_blobs(p);
    arena_deinit(&p->arena);
    reply_deinit(&p->reply);
    buf_deinit(&p->text);
}

int caller_setup(void **state)
{
    (void)state;
    clock_setup();
    thread_enter("test");
    hash_set_secret(1);
    store_initial(access_options);
    store_initial(expire_options);
    store_initial(reclaim_options);
    store_initial(resp_options);
    store_initial(hash_options);
    store_initial(hyperloglog_options);
    store_initial(set_options);
    store_initial(list_options);
    store_initial(zset_options);
    store_initial(stream_options);
    db_setup(16);
    changes_setup();
    command_register(string_commands);
    command_register(string_set_commands);
    command_register(string_number_commands);
    command_register(string_lcs_commands);
    command_register(hash_commands);
    command_register(hash_walk_commands);
    command_register(hash_expire_commands);
    command_register(member_expire_commands);
    command_register(bit_commands);
    command_register(bit_field_commands);
    command_register(hyperloglog_commands);
    command_register(set_commands);
    command_register(set_random_commands);
    command_register(set_algebra_commands);
    command_register(zset_commands);
    command_register(zset_range_commands);
    command_register(zset_pop_commands);
    command_register(zset_algebra_commands);
    command_register(list_commands);
    command_register(list_index_commands);
    command_register(stream_commands);
    command_register(stream_read_commands);
    command_register(stream_info_commands);
    command_register(stream_group_commands);
    command_register(stream_group_read_commands);
    command_register(stream_claim_commands);
    command_register(stream_pending_commands);
    command_register(stream_peer_commands);
    command_register(key_commands);
    command_register(key_expire_commands);
    command_register(key_scan_commands);
    command_register(key_object_commands);
    command_register(sort_commands);
    command_register(geo_commands);
    command_register(geo_search_commands);
    command_register(nested_commands);
    cmdstats_setup();
    session_init(&session, 1);
    place_init(&plain);
    place_init(&sliced);
    return 0;
}

int caller_teardown(void **state)
{
    (void)state;
    place_deinit(&plain);
    place_deinit(&sliced);
    session_deinit(&session);
    reclaim_run();
    db_teardown();
    cmdstats_teardown();
    command_teardown();
    thread_leave();
    return 0;
}

/* Runs the call's first slice, or its next one, under the lock that it asks for; true when it is
 * done. */
static bool place_step(struct place *p, bool first) NO_THREAD_SAFETY_ANALYSIS;
static bool place_step(struct place *p, bool first)
{
    struct call *c = &p->call;
    enum call_access access = c->refusal.ptr ? ACCESS_NONE
                              : first        ? command_access(c->cmd)
                                             : c->continuation.access;
    bool done = true;
    c->now_ms = clock_wall_ms();
    c->held = access;
    if (access == ACCESS_SHARED) {
        keyspace_lock_shared();
    } else if (access == ACCESS_EXCLUSIVE) {
        keyspace_lock_exclusive();
    }
    mem_fail_above(refuse_above);
    if (first) {
        call_run(c);
        if (c->needs_exclusive) {
            /* As the server does: again, in exclusive mode. */
            keyspace_unlock_shared();
            keyspace_lock_exclusive();
            access = c->held = ACCESS_EXCLUSIVE;
            c->needs_exclusive = false;
            call_run(c);
        }
        done = !c->continuation.step;
    } else {
        done = call_continue(c);
    }
    mem_fail_above(SIZE_MAX);
    if (access == ACCESS_SHARED) {
        keyspace_unlock_shared();
    } else if (access == ACCESS_EXCLUSIVE) {
        keyspace_unlock_exclusive();
    }
    reclaim_run();
    return done;
}

/* The arguments are copied into the arena: they live as long as the call, no longer. */
static bool place_begin(struct place *p, int argc, const struct slice *argv)
{
    arena_reset(&p->arena);
    reply_reset(&p->reply);
    p->call = (struct call){.argc = argc, .session = &session, .reply = &p->reply};
    p->call.argv = arena_alloc(&p->arena, (size_t)argc * sizeof(*argv));
    release_blobs(p);
    for (int i = 0; i < argc; i++) {
        if (argv[i].len >= BLOB_FROM_BYTES) {
            assert_true(i < WORDS_MAX);
            p->blobs[i] = blob_create_copy(argv[i]);
            p->call.argv[i] = blob_slice(p->blobs[i]);
            p->call.blobs = p->blobs;
            continue;
        }
        char *copy = arena_alloc(&p->arena, argv[i].len + 1);
        memcpy(copy, argv[i].ptr, argv[i].len);
        p->call.argv[i] = slice_of(copy, argv[i].len);
    }
    reply_begin(&p->reply, session.proto);
    call_prepare(&p->call, &p->arena);
    return place_step(p, true);
}

static struct slice place_text(struct place *p)
{
    uint32_t count = reply_end(&p->reply);
    buf_clear(&p->text);
    for (uint32_t i = 0; i < count; i++) {
        buf_append(&p->text, p->reply.pieces[i].ptr, p->reply.pieces[i].len);
    }
    buf_cstr(&p->text);
    return buf_slice(&p->text);
}

void caller_refuse_above(size_t bytes)
{
    refuse_above = bytes;
}

const char *caller_run_args(int argc, const struct slice *argv)
{
    bool done = place_begin(&plain, argc, argv);
    while (!done) {
        done = place_step(&plain, false);
    }
    return place_text(&plain).ptr;
}

static int split(const char *line, struct slice *words)
{
    int count = 0;
    while (*line) {
        size_t len = strcspn(line, " ");
        assert_true(count < WORDS_MAX);
        words[count++] = slice_of(line, len);
        line += len + (line[len] == ' ');
    }
    return count;
}

const char *caller_run(const char *line)
{
    struct slice words[WORDS_MAX];
    return caller_run_args(split(line, words), words);
}

const char *caller_run_whole(const char *line)
{
    session.internal = true;
    const char *reply = caller_run(line);
    session.internal = false;
    return reply;
}

bool caller_begin_line(const char *line)
{
    struct slice words[WORDS_MAX];
    return caller_begin(split(line, words), words);
}

bool caller_begin(int argc, const struct slice *argv)
{
    return place_begin(&sliced, argc, argv);
}

bool caller_continue(void)
{
    return place_step(&sliced, false);
}

enum call_access caller_next_access(void)
{
    return sliced.call.continuation.access;
}

struct slice caller_sliced_reply(void)
{
    return place_text(&sliced);
}

void caller_abandon(void)
{
    call_abandon(&sliced.call.continuation);
}

struct entry *caller_entry(const char *name)
{
    struct key key = key_of(slice_cstr(name));
    keyspace_lock_shared();
    struct entry *e = db_read(db_at(0), &key, clock_wall_ms(), DB_NO_TOUCH | DB_NO_STATS);
    keyspace_unlock_shared();
    return e;
}

struct session *caller_session(void)
{
    return &session;
}

const struct call *caller_last(void)
{
    return &plain.call;
}
