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

/* repl-diskless-load. */
enum follow_diskless { DISKLESS_DISABLED, DISKLESS_ON_EMPTY, DISKLESS_SWAP };

struct follow_settings {
    char *host; /* NULL: nobody; world */
    int64_t port;
    char *user, *password;
    bool read_only, serve_stale, announced, lazy_flush;
    int64_t quorum; /* replica-quorum: that many primaries must be there, -1: all */
    int diskless_load;
    int64_t priority;
    char *announce_ip;
    int64_t announce_port;
};
extern struct follow_settings follow_settings;

/* Shuts or opens the gates that a replica has. World, or the thread while it is awake. */
void follow_judge(void);
/* An option's `apply`. */
bool follow_apply_option(const struct option *option, const char **error);

#define FOLLOW_LINE_BYTES 4096
#define FOLLOW_READ_BYTES ((size_t)64 * 1024)

/* The link, and what was read from it and not used. */
struct follow_link {
    struct link *link;
    int wake_fd; /* readable: look whether we still follow him */
    bool (*interrupted)(const struct follow_link *l); /* we do not */
    char bytes[FOLLOW_READ_BYTES];
    size_t begin, end;
    char why[128]; /* the first cause for which it can't go on, for the log; "" while it can */
};

/* Notes why the link can't go on, unless that is known. False. */
bool follow_broken(struct follow_link *l, const char *why);
/* Each waits no longer than repl-timeout, and fails (follow_broken) when interrupted or cut. */
/* Sends a request of words. */
bool follow_send(struct follow_link *l, int argc, const struct slice *argv) MUST_CHECK;
/* Sends bytes. */
bool follow_send_bytes(struct follow_link *l, struct slice bytes) MUST_CHECK;
/* A sign of life to the primary, if that is possible without waiting. */
void follow_send_newline(struct follow_link *l);
/* The next line without its end, NUL-terminated; empty ones are left out. */
bool follow_line(struct follow_link *l, char line[FOLLOW_LINE_BYTES]) MUST_CHECK;
/* Makes l->bytes[begin, end) not empty. */
bool follow_fill(struct follow_link *l) MUST_CHECK;
/* The same, waiting at most `ms`: 1 there is something, 0 nothing yet, -1 cut or interrupted. */
int follow_wait(struct follow_link *l, int ms) MUST_CHECK;

/* Sends a request and reads the line of its reply. */
bool follow_ask(struct follow_link *l, char line[FOLLOW_LINE_BYTES], int argc,
                const struct slice *argv) MUST_CHECK;
/* The same of words that are written out. */
#define FOLLOW_ASK(l, line, ...)                                                                   \
    follow_ask((l), (line),                                                                        \
               (int)(sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice)),          \
               (const struct slice[]){__VA_ARGS__})
/* The handshake's first part: PING, AUTH with masterauth, REPLCONF with what we are. False, logged
 * where the other server has said why, when it does not go on. No lock is held. */
bool follow_greet(struct follow_link *l) MUST_CHECK;

/* A connection that stands: the handshake, the data set if need be, the stream, until it ends. The
 * following thread, after apply_setup; or a test in its place. */
void follow_talk(struct link *socket);
/* A data set comes over the link and replaces ours, which is history `id` at `offset` then. As
 * repl-diskless-load says:
 *
 *   disabled      to a file first, and from there in place of ours; -LOADING while it is read
 *   on-empty-db   straight from the link, if we have no keys (else as disabled); -LOADING
 *   swapdb        straight from the link into a data set aside (keyspace/db.h), which takes the
 *                 place of ours in one hold. Ours is served meanwhile if it is of the history that
 *                 comes; -LOADING otherwise.
 *
 * False, logged, when any of it failed. Then ours is empty and nobody's history, if it had begun to
 * be replaced; with swapdb it is what it was, as are our own replicas, which have to fetch
 * everything anew only once ours is replaced. */
bool follow_receive(struct follow_link *l, const char *id, uint64_t offset) MUST_CHECK;
/* The server is to end, now or when its own replicas have everything: the data stay as they are. */
bool follow_is_ending(void);
/* Our own replicas are to ask again: the history is another one now. */
void follow_dismiss_replicas(void);
/* INFO's lines of a transfer that runs. */
void follow_write_transfer(struct buf *out);

#endif
