/* The connection of a call's client, lent to the call for a conversation that goes on before it
 * replies: that of the script debugger. Bytes pass between the call and the socket, and nothing
 * else reads or writes there meanwhile.
 *
 * The call runs on the client's own server thread; in a forked child on the one thread that there
 * is, with a copy of the client and the socket shared with the parent, who has let go of it
 * (console_leave). The waits here hold whatever the caller holds.
 *
 * State: thread-owned (the client); who serves the verbs is set at boot. */
#ifndef ENGINE_CONSOLE_H
#define ENGINE_CONSOLE_H

#include "engine/call.h"

#include <sys/types.h>

/* Whether a client sent the call, not in a transaction or script, and every reply before it is with
 * the socket. */
bool console_is_caught_up(const struct call *c);
/* The same, and nothing has been read of what may have come behind the call: the conversation can
 * begin. */
bool console_is_free(const struct call *c);
/* The descriptor of its socket, for a child to keep. */
int console_fd(const struct call *c);
/* Waits until something can be read, `wait_ms` at most, and reads up to `room` bytes: how many; 0
 * when nothing came in time, -1 when the connection is over. */
ssize_t console_read(const struct call *c, char *bytes, size_t room, int wait_ms) MUST_CHECK;
/* The same for writing: how many of the bytes were taken. */
ssize_t console_write(const struct call *c, struct slice bytes, int wait_ms) MUST_CHECK;
/* Whether all that was taken is with the socket, as far as TLS can tell. Tries to have it so. */
bool console_is_flushed(const struct call *c);
/* The connection is a child's from now on: it is closed here, and its peer does not notice. The
 * call replies nothing. */
void console_leave(const struct call *c);
/* The conversation is over: nothing more is read, and the connection is closed behind the call's
 * reply. */
void console_end(const struct call *c);

/* Boot: who has the connections. */
struct console_ops {
    bool (*is_caught_up)(const struct call *c);
    bool (*is_free)(const struct call *c);
    int (*fd)(const struct session *s);
    ssize_t (*read)(const struct session *s, char *bytes, size_t room, int wait_ms);
    ssize_t (*write)(const struct session *s, struct slice bytes, int wait_ms);
    bool (*is_flushed)(const struct session *s);
    void (*leave)(const struct session *s);
    void (*end)(const struct session *s);
};
void console_set_ops(const struct console_ops *ops);

#endif
