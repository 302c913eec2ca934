/* A link to another server that we take something from: what is said in lines, what comes in bytes,
 * and the handshake that a replica makes. State: its owner's, one thread. */
#ifndef REPL_FOLLOW_LINK_H
#define REPL_FOLLOW_LINK_H

#include "base/compiler.h"
#include "base/slice.h"
#include "repl/link.h"

#include <stdbool.h>
#include <stddef.h>

#define FOLLOW_LINE_BYTES 4096
/* REPLCONF capa of a replica that knows KeyDB's envelopes: ours say so to one another. */
#define FOLLOW_KNOWS_ENVELOPES "keydb-rreplay"
#define FOLLOW_READ_BYTES ((size_t)64 * 1024)

#define FOLLOW_CLOSED "closed by the other side"

/* The link, and what was read from it and not used. */
struct follow_link {
    struct link *link;
    int wake_fd; /* readable: look whether we still follow him */
    bool (*interrupted)(const struct follow_link *l); /* we do not */
    char bytes[FOLLOW_READ_BYTES];
    size_t begin, end;
    bool is_enveloped; /* he has said that he is an active replica of KeyDB (envelope.h) */
    char why[256];     /* the first cause for which it can't go on, for the log; "" while it can */
};

/* Notes why the link can't go on, unless that is known. False. */
bool follow_broken(struct follow_link *l, const char *why);
/* The same of an answer; `what` is said before it. False. */
bool follow_refused(struct follow_link *l, const char *what, const char *line);
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
/* The handshake's first part: PING, AUTH with masterauth, REPLCONF with what we are;
 * l->is_enveloped is set. False (follow_broken) when it does not go on. No lock is held. */
bool follow_greet(struct follow_link *l) MUST_CHECK;

#endif
