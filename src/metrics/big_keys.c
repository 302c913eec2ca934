/* See big_keys.h. */
#include "metrics/big_keys.h"

#include "base/clock.h"
#include "base/field.h"
#include "base/json.h"
#include "base/mem.h"
#include "engine/gil.h"
#include "keyspace/db.h"
#include "keyspace/lock.h"
#include "metrics/http.h"
#include "value/entry.h"

#include <string.h>

/* Keys of a hold: some tens of microseconds. */
#define KEYS_A_HOLD 32
/* How long a step goes on taking holds, and how long it then is away. */
#define STEP_US 2000
#define PAUSE_MS 2
/* What is shown of a key. */
#define KEY_MAX_BYTES 128
/* Elements of a value that its size is guessed from. */
#define SAMPLES 5

enum walk_state { NONE, WALKING, DONE, STOPPED };

struct big_key {
    int db;
    size_t bytes;
    const char *type;
    size_t len;
    char key[KEY_MAX_BYTES];
};

static struct {
    enum walk_state state;
    int db;
    uint64_t cursor, seen, total, begin_us;
    unsigned count; /* of keys, the largest first */
    struct big_key *keys;
} walk;

/* ---- what is found ---- */

static void keep(struct entry *e, void *context)
{
    (void)context;
    size_t bytes = entry_memory_bytes(e, SAMPLES);
    struct slice key = entry_key(e);
    walk.seen++;
    if (walk.count == BIG_KEYS_SHOWN && bytes <= walk.keys[walk.count - 1].bytes) {
        return;
    }
    unsigned at = walk.count < BIG_KEYS_SHOWN ? walk.count++ : BIG_KEYS_SHOWN - 1;
    for (; at > 0 && walk.keys[at - 1].bytes < bytes; at--) {
        walk.keys[at] = walk.keys[at - 1];
    }
    struct big_key *k = &walk.keys[at];
    *k = (struct big_key){.db = walk.db,
                          .bytes = bytes,
                          .type = value_ops_of[entry_type(e)]->name,
                          .len = key.len < KEY_MAX_BYTES ? key.len : KEY_MAX_BYTES};
    memcpy(k->key, key.ptr, k->len);
}

/* ---- the walk ---- */

/* One hold. False when the walk is at its end, or cannot go on now (*later). */
static bool take_hold(bool *later)
{
    if (walk.db >= db_count()) {
        walk.state = DONE;
        return false;
    }
    if (!keyspace_try_shared()) {
        *later = true;
        return false;
    }
    int64_t now_ms = keyspace_time_ms(clock_wall_ms());
    walk.cursor = db_scan(db_at(walk.db), walk.cursor, KEYS_A_HOLD, now_ms, keep, NULL);
    keyspace_unlock_shared();
    if (walk.cursor == 0) {
        walk.db++;
    }
    return true;
}

static void step(void)
{
    bool later = false;
    uint64_t begin_us = clock_mono_us();
    gil_wake();
    while (clock_mono_us() - begin_us < STEP_US && take_hold(&later)) {
    }
    gil_sleep();
    if (walk.state == WALKING &&
        clock_mono_us() - walk.begin_us > (uint64_t)BIG_KEYS_MAX_S * 1000000) {
        walk.state = STOPPED;
    }
    if (walk.state == WALKING) {
        http_call_later(step, PAUSE_MS);
    }
}

static uint64_t count_keys(void)
{
    uint64_t total = 0;
    if (keyspace_try_shared()) {
        for (int i = 0; i < db_count(); i++) {
            total += db_size(db_at(i));
        }
        keyspace_unlock_shared();
    }
    return total;
}

void big_keys_start(void)
{
    if (walk.state == WALKING) {
        return;
    }
    if (!walk.keys) {
        walk.keys = mem_calloc(BIG_KEYS_SHOWN, sizeof(*walk.keys));
    }
    walk.state = WALKING;
    walk.db = 0;
    walk.cursor = walk.seen = 0;
    walk.count = 0;
    walk.begin_us = clock_mono_us();
    walk.total = count_keys();
    http_call_later(step, PAUSE_MS);
}

void big_keys_write(struct buf *out)
{
    static const char *const words[] = {
        [NONE] = "none", [WALKING] = "walking", [DONE] = "done", [STOPPED] = "stopped"};
    field_part_text(out, "{\"state\":\"", words[walk.state]);
    field_part_u64(out, "\",\"seen\":", walk.seen);
    field_part_u64(out, ",\"total\":", walk.total);
    buf_append_cstr(out, ",\"keys\":[");
    for (unsigned i = 0; i < walk.count; i++) {
        const struct big_key *k = &walk.keys[i];
        field_part_i64(out, i ? ",{\"db\":" : "{\"db\":", k->db);
        buf_append_cstr(out, ",\"key\":");
        json_append_string(out, slice_of(k->key, k->len));
        field_part_text(out, ",\"type\":\"", k->type);
        field_part_u64(out, "\",\"bytes\":", k->bytes);
        buf_append_char(out, '}');
    }
    buf_append_cstr(out, "]}\n");
}

void big_keys_teardown(void)
{
    mem_free(walk.keys);
    walk.keys = NULL;
    walk.state = NONE;
    walk.count = 0;
}
