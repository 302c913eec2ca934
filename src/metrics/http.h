/* HTTP on a thread of its own, by libevent's evhttp: GET and HEAD, one request a connection.
 *
 * Bounds, which evhttp has not got: HTTP_CONNECTIONS_MAX connections, further ones wait to be
 * accepted; a client has HTTP_TIME_S seconds to ask, whatever it does, and as many to read the
 * answer; of what it sends a few KiB are kept. What is answered is made on this thread, awake, so
 * it asks and waits as a server thread's commands may.
 *
 * State: thread-owned (its own thread's); others send it messages. */
#ifndef METRICS_HTTP_H
#define METRICS_HTTP_H

#include "base/buf.h"

#define HTTP_CONNECTIONS_MAX 64
#define HTTP_TIME_S 5

struct evkeyvalq; /* libevent's list of header fields: evhttp_add_header */

/* What is asked. ptr is NULL for what is not there. */
struct http_request {
    struct slice path, query; /* as they were sent */
    struct slice authorization, accept, host;
};

/* Who asks. */
struct http_peer {
    const char *address; /* "ip:port" */
    bool local;          /* from this machine's loopback address */
};

/* What to answer: filled by the handler; the server frees it. */
struct http_answer {
    int status;
    const char *type;         /* Content-Type, NULL without a body */
    struct evkeyvalq *fields; /* of its head; the server's, for more to be added */
    struct buf body;
};

typedef void (*http_handler)(const struct http_request *request, const struct http_peer *peer,
                             struct http_answer *answer);

/* Starts the thread, which listens nowhere yet. False is logged. Main thread. */
bool http_start(http_handler handler) MUST_CHECK;
/* Listens with this socket from now on, in place of the one before, which is closed; -1: nowhere.
 * Any thread, while the server runs. */
void http_listen_take(int fd_take);
/* Has the thread call `step` after `wait_ms`, asleep. The server's own thread (a handler, a step).
 */
void http_call_later(void (*step)(void), unsigned wait_ms);
/* Ends the thread; connections are closed as they stand. Main thread. */
void http_stop(void);

#endif
