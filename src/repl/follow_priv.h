/* What the files of follow.h share: settings, and the link's bytes. State: see follow.h. */
#ifndef REPL_FOLLOW_PRIV_H
#define REPL_FOLLOW_PRIV_H

#include "base/compiler.h"
#include "base/slice.h"
#include "repl/follow.h"
#include "repl/link.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

enum follow_state {
    FOLLOW_NOBODY,
    FOLLOW_CONNECT,
    FOLLOW_HANDSHAKE,
    FOLLOW_SYNC,
    FOLLOW_CONNECTED,
};

struct follow_settings {
    char *host; /* NULL: nobody; world */
    int64_t port;
    char *user, *password;
    bool read_only, serve_stale, announced, lazy_flush;
    int diskless_load;
    int64_t priority;
    char *announce_ip;
    int64_t announce_port;
};
extern struct follow_settings follow_settings;

/* Shuts or opens the gates that a replica has. */
void follow_judge(void);
/* An option's `apply`. */
bool follow_apply_option(const struct option *option, const char **error);

#define FOLLOW_LINE_BYTES 4096
#define FOLLOW_READ_BYTES ((size_t)64 * 1024)

/* The link, and what was read from it and not used. */
struct follow_link {
    struct link *link;
    int wake_fd;               /* readable: look whether we still follow him */
    bool (*interrupted)(void); /* we do not */
    char bytes[FOLLOW_READ_BYTES];
    size_t begin, end;
};

/* Each waits no longer than repl-timeout, and fails when interrupted or cut. */
/* Sends a request of words. */
bool follow_send(struct follow_link *l, int argc, const struct slice *argv) MUST_CHECK;
/* A sign of life to the primary, if that is possible without waiting. */
void follow_send_newline(struct follow_link *l);
/* The next line without its end, NUL-terminated; empty ones are left out. */
bool follow_line(struct follow_link *l, char line[FOLLOW_LINE_BYTES]) MUST_CHECK;
/* Makes l->bytes[begin, end) not empty. */
bool follow_fill(struct follow_link *l) MUST_CHECK;
/* The same, waiting at most `ms`: 1 there is something, 0 nothing yet, -1 cut or interrupted. */
int follow_wait(struct follow_link *l, int ms) MUST_CHECK;

/* A connection that stands: the handshake, the data set if need be, the stream, until it ends. The
 * following thread, after apply_setup; or a test in its place. */
void follow_talk(struct link *socket);
/* A data set that comes over the link goes to a file, then replaces ours, which is history `id` at
 * `offset` then. False, logged, when any of it failed. */
bool follow_receive(struct follow_link *l, const char *id, uint64_t offset) MUST_CHECK;
/* INFO's lines of a transfer that runs. */
void follow_write_transfer(struct buf *out);

#endif
