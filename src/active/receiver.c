/* See receiver.h. */
#include "active/receiver.h"

#include "base/mem.h"

#include <string.h>

void receiver_init(struct receiver *t, uint16_t self)
{
    *t = (struct receiver){.self = self};
}

void receiver_deinit(struct receiver *t)
{
    mem_free(t->origins);
    mem_free(t->positions);
    mem_free(t->brought);
    *t = (struct receiver){0};
}

uint64_t receiver_position(const struct receiver *t, uint16_t origin)
{
    return origin < t->count ? t->positions[origin] : 0;
}

bool receiver_brings(const struct receiver *t, uint16_t origin)
{
    return origin < t->brought_count && t->brought[origin];
}

static void note_brought(struct receiver *t, uint16_t origin)
{
    if (origin >= t->brought_count) {
        uint32_t count = (uint32_t)origin + 1;
        t->brought = mem_realloc(t->brought, count * sizeof(*t->brought));
        memset(t->brought + t->brought_count, 0, (count - t->brought_count) * sizeof(*t->brought));
        t->brought_count = count;
    }
    t->brought[origin] = true;
}

static uint16_t origin_of(const struct receiver *t, uint16_t handle)
{
    return handle < t->handles ? t->origins[handle] : 0;
}

static bool take_origin(struct receiver *t, struct origins *o, const struct frame *f,
                        const char **error)
{
    uint16_t index = origins_enter(o, &f->id);
    uint16_t known = origin_of(t, f->handle);
    if (index == 0) {
        *error = "there is no room for another origin";
        return false;
    }
    if (known && known != index) {
        *error = "a handle that stands for another origin already";
        return false;
    }
    if (f->handle >= t->handles) {
        uint32_t handles = (uint32_t)f->handle + 1;
        t->origins = mem_realloc(t->origins, handles * sizeof(*t->origins));
        memset(t->origins + t->handles, 0, (handles - t->handles) * sizeof(*t->origins));
        t->handles = handles;
    }
    t->origins[f->handle] = index;
    return true;
}

enum receiver_result receiver_unit(const struct origins *o, uint16_t self, struct dot dot, int db,
                                   struct slice commands, const struct receiver_sink *sink,
                                   const char **error)
{
    uint16_t origin = dot_origin(dot);
    enum origin_arrival arrival = origins_arrival(o, origin, dot_sequence(dot));
    if (arrival == ORIGIN_DUPLICATE) {
        return RECEIVED_BEFORE;
    }
    if (sink->awaits && sink->awaits(sink->context, origin)) {
        return RECEIVED_LATER;
    }
    if (origin == self) {
        *error = "a write in our own name";
        return RECEIVED_GAP;
    }
    if (arrival == ORIGIN_GAP) {
        *error = "a write whose predecessor is missing";
        return RECEIVED_GAP;
    }
    struct unit *u = unit_create(dot, db, commands);
    if (!u) {
        *error = "a write that is no row of commands";
        return RECEIVED_NEVER;
    }
    bool seen = sink->see(sink->context, dot.stamp);
    if (!seen) {
        *error = "a stamp more than a day ahead of our clock";
    }
    bool taken = seen && sink->unit(sink->context, u, error);
    unit_release(u);
    return taken ? RECEIVED : RECEIVED_NEVER;
}

static enum receiver_result take_write(struct receiver *t, const struct origins *o,
                                       const struct frame *f, const struct receiver_sink *sink,
                                       const char **error)
{
    uint16_t origin = origin_of(t, f->handle);
    if (!origin) {
        *error = "a write of an origin that was not named";
        return RECEIVED_NEVER;
    }
    enum receiver_result result = receiver_unit(o, t->self, dot_of(f->stamp, origin, f->sequence),
                                                f->db, f->commands, sink, error);
    if (result == RECEIVED) {
        note_brought(t, origin);
    }
    return result;
}

static void note_position(struct receiver *t, uint16_t origin, uint64_t position)
{
    if (origin >= t->count) {
        uint32_t count = (uint32_t)origin + 1;
        t->positions = mem_realloc(t->positions, count * sizeof(*t->positions));
        memset(t->positions + t->count, 0, (count - t->count) * sizeof(*t->positions));
        t->count = count;
    }
    t->positions[origin] = position;
}

/* A clock says that all writes up to it have numbers up to the position: true of us as well once we
 * have those. */
static bool take_clocks(struct receiver *t, struct origins *o, const struct frame *f,
                        const struct receiver_sink *sink, const char **error)
{
    for (uint32_t i = 0; i < f->count; i++) {
        struct frame_clock c = frame_clock_at(f, i);
        uint16_t origin = origin_of(t, c.handle);
        if (!origin) {
            *error = "the clock of an origin that was not named";
            return false;
        }
        if (!sink->see(sink->context, c.clock) || !sink->see(sink->context, c.seen)) {
            *error = "a clock more than a day ahead of ours";
            return false;
        }
        note_position(t, origin, c.position);
        if (origins_at(o, origin)->position >= c.position) {
            origins_hear(o, origin, c.clock, c.seen);
        }
    }
    return true;
}

/* What is told next may be a consequence of these. */
static enum receiver_result take_causes(const struct receiver *t, const struct origins *o,
                                        const struct frame *f, const struct receiver_sink *sink,
                                        const char **error)
{
    for (uint32_t i = 0; i < f->count; i++) {
        struct frame_clock cause = frame_cause_at(f, i);
        uint16_t origin = origin_of(t, cause.handle);
        if (!origin) {
            *error = "a cause by an origin that was not named";
            return RECEIVED_NEVER;
        }
        if (origins_at(o, origin)->position < cause.position && sink->comes &&
            sink->comes(sink->link, origin, cause.position)) {
            return RECEIVED_LATER;
        }
    }
    return RECEIVED;
}

enum receiver_result receiver_frame(struct receiver *t, struct origins *o, const struct frame *f,
                                    const struct receiver_sink *sink, const char **error)
{
    if (f->kind == 'W') {
        return take_write(t, o, f, sink, error);
    }
    if (f->kind == 'A') {
        return take_causes(t, o, f, sink, error);
    }
    if (f->kind == 'S') {
        *error = "a data set that was not announced";
        return RECEIVED_NEVER;
    }
    bool fine = f->kind == 'O' ? take_origin(t, o, f, error) : take_clocks(t, o, f, sink, error);
    return fine ? RECEIVED : RECEIVED_NEVER;
}
