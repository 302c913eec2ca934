/* An outgoing connection to another server, by TLS where tls-replication wants it: requests out,
 * replies in, each step bounded in time and ended early when the server ends; or bytes, without
 * waiting. Blocks the calling thread, which holds no lock. State: that of its owner, one thread. */
#ifndef REPL_LINK_H
#define REPL_LINK_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/option.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct link {
    struct redisContext *context; /* hiredis's; NULL: not connected */
    struct tls *tls;              /* NULL: plain */
    bool broken;                  /* TLS was wanted and could not be had */
    int fd;                       /* the context's */
    struct buf out;               /* requests to be sent */
    int64_t timeout_ms;           /* of each step */
    int64_t total_ms;             /* of all steps from link_connect on; 0: as many as there are */
    int64_t end_ms;               /* what follows from it: link_connect sets it */
    const _Atomic bool *stop;     /* once true every step fails soon; may be NULL */
    char why[128];                /* why link_connect has failed, for the log */
};

/* Chooses between plain and TLS; before link_connect. The GIL is held in some mode. */
void link_prepare(struct link *l);
/* Connects to `host` (name or address) and `port` within link->timeout_ms; from the address of
 * bind-source-addr, `source` (NULL or "": any). False, with nothing connected, otherwise. */
bool link_connect(struct link *l, const char *host, int port, const char *source) MUST_CHECK;
void link_close(struct link *l);
/* Adds a request to what is to be sent. */
void link_add(struct link *l, int argc, const struct slice *argv);
/* A request's bytes. */
void link_format(struct buf *out, int argc, const struct slice *argv);
/* Sends everything. */
bool link_flush(struct link *l) MUST_CHECK;

/* A reply: what it is in short. */
enum link_reply { LINK_FINE, LINK_ERROR, LINK_BROKEN };
#define LINK_TEXT_BYTES 256
/* The next reply; the text of an error one (cut, NUL at its end). */
enum link_reply link_read(struct link *l, char text[LINK_TEXT_BYTES]) MUST_CHECK;

/* ---- bytes ---- */

/* As recv and send that do not wait: errno EAGAIN when the socket has to become readable, or
 * writable, first. */
ssize_t link_receive(struct link *l, char *bytes, size_t room);
ssize_t link_send(struct link *l, const char *bytes, size_t len);
/* True when something that was taken waits for the socket to become writable; tries to send it. */
bool link_unsent(struct link *l);

/* bind-source-addr; NULL: any. World. */
extern char *link_source_address;
extern const struct option link_options[];

#endif
