/* What a peer may send over a link of active replicas: frames (active/frame.h), the commands
 * in them (active/unit.h) with their classes, states' positions, and origins as text. What is
 * accepted must be bounded by the input and give the same bytes again. */
#include "base/buf.h"
#include "base/mem.h"
#include "active/effect.h"
#include "active/frame.h"
#include "active/receiver.h"
#include "active/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "active frames: %s\n", what);
        abort();
    }
}

static bool within(struct slice part, struct slice all)
{
    return part.ptr >= all.ptr && part.len <= all.len &&
           (size_t)(part.ptr - all.ptr) <= all.len - part.len;
}

static void look_at_positions(struct slice bytes)
{
    struct origins o;
    struct buf again = {0};
    origins_init(&o);
    struct version_vector *c = version_vector_decode(&o, bytes);
    if (c) {
        version_vector_encode(&o, c, &again);
        require(again.len <= bytes.len, "positions grow");
        struct version_vector *same = version_vector_decode(&o, buf_slice(&again));
        require(same != NULL, "positions are read again");
        for (uint32_t i = 0; i < c->count; i++) {
            require(version_vector_at(c, i) == version_vector_at(same, i),
                    "positions are the same");
        }
        mem_free(same);
    }
    mem_free(c);
    buf_deinit(&again);
    origins_deinit(&o);
}

static void look_at_commands(const struct frame *f)
{
    struct unit *u = unit_create(dot_of(f->stamp, 1, f->sequence), f->db, f->commands);
    if (!u) {
        return;
    }
    struct slice all = slice_of(u->bytes, u->len), words[EFFECT_WORDS];
    const struct slice *argv;
    struct unit_command c = unit_command_before(u);
    struct effect effect;
    while (unit_command_next(u, &c)) {
        for (int i = 0; effect_of(c.argc, c.argv, i, &effect); i++) {
            require(effect.key < c.argc && effect.scope < c.argc, "a key is among the words");
            for (int k = 0; k < effect.count; k++) {
                require(within(effect_member(&effect, c.argv, k), all), "a member is there");
            }
            require(effect_command(&effect, c.argc, c.argv, words, &argv) > 0, "a command");
        }
        look_at_positions(c.argv[c.argc - 1]);
    }
    unit_release(u);
}

static void put_again(const struct frame *f, struct buf *out)
{
    struct frame_clock *clocks = mem_alloc((f->count + 1) * sizeof(*clocks));
    switch (f->kind) {
    case 'O':
        frame_put_origin(out, f->handle, &f->id);
        break;
    case 'W':
        frame_put_write(out, f->handle, f->sequence, f->stamp, f->db, f->commands);
        break;
    case 'A':
        for (uint32_t i = 0; i < f->count; i++) {
            clocks[i] = frame_cause_at(f, i);
        }
        frame_put_causes(out, clocks, f->count);
        break;
    case 'S':
        frame_put_set(out);
        break;
    default:
        for (uint32_t i = 0; i < f->count; i++) {
            clocks[i] = frame_clock_at(f, i);
        }
        frame_put_clocks(out, clocks, f->count);
    }
    mem_free(clocks);
}

static bool sees(void *context, uint64_t stamp)
{
    (void)context;
    return stamp < UINT64_MAX / 2;
}

static bool takes_unit(void *context, struct unit *unit, const char **error)
{
    (void)error;
    origins_advance(context, dot_origin(unit->dot), dot_sequence(unit->dot));
    return true;
}

/* The same bytes as a link's: positions move by one write at a time or not at all. */
static void take_all(struct slice data)
{
    struct origins o;
    struct receiver t;
    struct frame f;
    const char *error;
    size_t consumed;
    origins_init(&o);
    const struct receiver_sink sink = {.see = sees, .unit = takes_unit, .context = &o};
    receiver_init(&t, origins_enter(&o, &(struct origin_id){.epoch = 7}));
    while (frame_next(data, 1 << 20, &f, &consumed, &error) == FRAME_WHOLE &&
           receiver_frame(&t, &o, &f, &sink, &error) <= RECEIVED_BEFORE) {
        data = slice_of(data.ptr + consumed, data.len - consumed);
    }
    require(origins_at(&o, t.self)->position == 0, "nobody writes in our name");
    receiver_deinit(&t);
    origins_deinit(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice data = slice_of((const char *)bytes, len);
    struct origin_id id;
    char text[ORIGIN_CHARS];
    look_at_positions(data);
    take_all(data);
    if (origin_parse(slice_of(data.ptr, len < sizeof(text) ? len : sizeof(text)), &id)) {
        origin_format(&id, text);
        require(memcmp(text, data.ptr, sizeof(text)) == 0, "an origin's text is the same");
    }
    for (;;) {
        struct frame f;
        struct buf again = {0};
        size_t consumed;
        const char *error = NULL;
        enum frame_result result = frame_next(data, 1 << 20, &f, &consumed, &error);
        if (result != FRAME_WHOLE) {
            require(result == FRAME_MORE || error != NULL, "what is broken has a reason");
            break;
        }
        require(consumed >= FRAME_HEAD_BYTES && consumed <= data.len, "a frame's length");
        put_again(&f, &again);
        require(slice_equal(buf_slice(&again), slice_of(data.ptr, consumed)), "the same bytes");
        buf_deinit(&again);
        if (f.kind == 'W') {
            look_at_commands(&f);
        }
        data = slice_of(data.ptr + consumed, data.len - consumed);
    }
    return 0;
}
