/* What a peer may send over a link of active replicas: frames (repl/active_frame.h), the commands
 * in them (repl/active_unit.h) with their classes, states' positions, and origins as text. What is
 * accepted must be bounded by the input and give the same bytes again. */
#include "base/buf.h"
#include "base/mem.h"
#include "repl/active_class.h"
#include "repl/active_frame.h"
#include "repl/active_take.h"
#include "repl/active_unit.h"

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
    struct active_origins o;
    struct buf again = {0};
    active_origins_init(&o);
    struct active_cover *c = active_cover_decode(&o, bytes);
    if (c) {
        active_cover_encode(&o, c, &again);
        require(again.len <= bytes.len, "positions grow");
        struct active_cover *same = active_cover_decode(&o, buf_slice(&again));
        require(same != NULL, "positions are read again");
        for (uint32_t i = 0; i < c->count; i++) {
            require(active_cover_at(c, i) == active_cover_at(same, i), "positions are the same");
        }
        mem_free(same);
    }
    mem_free(c);
    buf_deinit(&again);
    active_origins_deinit(&o);
}

static void look_at_commands(const struct active_frame *f)
{
    struct active_unit *u =
        active_unit_create(active_dot_of(f->stamp, 1, f->sequence), f->db, f->commands);
    if (!u) {
        return;
    }
    struct slice all = slice_of(u->bytes, u->len), words[ACTIVE_PIECE_WORDS];
    const struct slice *argv;
    struct active_command c = active_command_before(u);
    struct active_piece piece;
    while (active_command_next(u, &c)) {
        for (int i = 0; active_classify(c.argc, c.argv, i, &piece); i++) {
            require(piece.key < c.argc, "a key is among the words");
            for (int k = 0; k < piece.count; k++) {
                require(within(active_piece_member(&piece, c.argv, k), all), "a member is there");
            }
            require(active_piece_command(&piece, c.argc, c.argv, words, &argv) > 0, "a command");
        }
        look_at_positions(c.argv[c.argc - 1]);
    }
    active_unit_release(u);
}

static void put_again(const struct active_frame *f, struct buf *out)
{
    struct active_frame_clock *clocks = mem_alloc((f->count + 1) * sizeof(*clocks));
    switch (f->kind) {
    case 'O':
        active_frame_put_origin(out, f->handle, &f->id);
        break;
    case 'W':
        active_frame_put_write(out, f->handle, f->sequence, f->stamp, f->db, f->commands.len);
        buf_append_slice(out, f->commands);
        break;
    default:
        for (uint32_t i = 0; i < f->count; i++) {
            clocks[i] = active_frame_clock_at(f, i);
        }
        active_frame_put_clocks(out, clocks, f->count);
    }
    mem_free(clocks);
}

static bool sees(void *context, uint64_t stamp)
{
    (void)context;
    return stamp < UINT64_MAX / 2;
}

static bool takes_unit(void *context, struct active_unit *unit, const char **error)
{
    (void)error;
    active_origins_advance(context, active_dot_origin(unit->dot), active_dot_sequence(unit->dot));
    return true;
}

/* The same bytes as a link's: positions move by one write at a time or not at all. */
static void take_all(struct slice data)
{
    struct active_origins o;
    struct active_take t;
    struct active_frame f;
    const char *error;
    size_t consumed;
    active_origins_init(&o);
    const struct active_sink sink = {.see = sees, .unit = takes_unit, .context = &o};
    active_take_init(&t, active_origins_enter(&o, &(struct active_origin_id){.epoch = 7}));
    while (active_frame_next(data, 1 << 20, &f, &consumed, &error) == ACTIVE_FRAME_WHOLE &&
           active_take_frame(&t, &o, &f, &sink, &error) <= ACTIVE_TAKEN_BEFORE) {
        data = slice_of(data.ptr + consumed, data.len - consumed);
    }
    require(active_origins_at(&o, t.self)->position == 0, "nobody writes in our name");
    active_take_deinit(&t);
    active_origins_deinit(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice data = slice_of((const char *)bytes, len);
    struct active_origin_id id;
    char text[ACTIVE_ORIGIN_CHARS];
    look_at_positions(data);
    take_all(data);
    if (active_origin_parse(slice_of(data.ptr, len < sizeof(text) ? len : sizeof(text)), &id)) {
        active_origin_format(&id, text);
        require(memcmp(text, data.ptr, sizeof(text)) == 0, "an origin's text is the same");
    }
    for (;;) {
        struct active_frame f;
        struct buf again = {0};
        size_t consumed;
        const char *error = NULL;
        enum active_frame_result result = active_frame_next(data, 1 << 20, &f, &consumed, &error);
        if (result != ACTIVE_FRAME_WHOLE) {
            require(result == ACTIVE_FRAME_MORE || error != NULL, "what is broken has a reason");
            break;
        }
        require(consumed >= ACTIVE_FRAME_HEAD_BYTES && consumed <= data.len, "a frame's length");
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
