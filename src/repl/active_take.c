/* See active_take.h. */
#include "repl/active_take.h"

#include "base/mem.h"

#include <string.h>

void active_take_init(struct active_take *t, uint16_t self)
{
    *t = (struct active_take){.self = self};
}

void active_take_deinit(struct active_take *t)
{
    mem_free(t->origins);
    mem_free(t->positions);
    *t = (struct active_take){0};
}

uint64_t active_take_position(const struct active_take *t, uint16_t origin)
{
    return origin < t->count ? t->positions[origin] : 0;
}

static uint16_t origin_of(const struct active_take *t, uint16_t handle)
{
    return handle < t->handles ? t->origins[handle] : 0;
}

static bool take_origin(struct active_take *t, struct active_origins *o,
                        const struct active_frame *f, const char **error)
{
    uint16_t index = active_origins_enter(o, &f->id);
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

enum active_taken active_take_unit(const struct active_origins *o, uint16_t self,
                                   struct active_dot dot, int db, struct slice commands,
                                   const struct active_sink *sink, const char **error)
{
    uint16_t origin = active_dot_origin(dot);
    enum active_arrival arrival = active_origins_arrival(o, origin, active_dot_sequence(dot));
    if (arrival == ACTIVE_DUPLICATE) {
        return ACTIVE_TAKEN_BEFORE;
    }
    if (sink->awaits && sink->awaits(sink->context, origin)) {
        return ACTIVE_TAKEN_LATER;
    }
    if (origin == self) {
        *error = "a write in our own name";
        return ACTIVE_TAKEN_GAP;
    }
    if (arrival == ACTIVE_GAP) {
        *error = "a write whose predecessor is missing";
        return ACTIVE_TAKEN_GAP;
    }
    struct active_unit *u = active_unit_create(dot, db, commands);
    if (!u) {
        *error = "a write that is no row of commands";
        return ACTIVE_TAKEN_NEVER;
    }
    bool seen = sink->see(sink->context, dot.stamp);
    if (!seen) {
        *error = "a stamp more than a day ahead of our clock";
    }
    bool taken = seen && sink->unit(sink->context, u, error);
    active_unit_release(u);
    return taken ? ACTIVE_TAKEN : ACTIVE_TAKEN_NEVER;
}

static enum active_taken take_write(const struct active_take *t, const struct active_origins *o,
                                    const struct active_frame *f, const struct active_sink *sink,
                                    const char **error)
{
    uint16_t origin = origin_of(t, f->handle);
    if (!origin) {
        *error = "a write of an origin that was not named";
        return ACTIVE_TAKEN_NEVER;
    }
    return active_take_unit(o, t->self, active_dot_of(f->stamp, origin, f->sequence), f->db,
                            f->commands, sink, error);
}

static void note_position(struct active_take *t, uint16_t origin, uint64_t position)
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
static bool take_clocks(struct active_take *t, struct active_origins *o,
                        const struct active_frame *f, const struct active_sink *sink,
                        const char **error)
{
    for (uint32_t i = 0; i < f->count; i++) {
        struct active_frame_clock c = active_frame_clock_at(f, i);
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
        if (active_origins_at(o, origin)->position >= c.position) {
            active_origins_hear(o, origin, c.clock, c.seen);
        }
    }
    return true;
}

enum active_taken active_take_frame(struct active_take *t, struct active_origins *o,
                                    const struct active_frame *f, const struct active_sink *sink,
                                    const char **error)
{
    if (f->kind == 'W') {
        return take_write(t, o, f, sink, error);
    }
    bool fine = f->kind == 'O' ? take_origin(t, o, f, error) : take_clocks(t, o, f, sink, error);
    return fine ? ACTIVE_TAKEN : ACTIVE_TAKEN_NEVER;
}
