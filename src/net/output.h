/* A client's output: pieces of a reply go to the socket in one call; what it does not take is
 * copied (bytes) or referenced (blobs) and sent when it is writable. State: thread-owned. */
#ifndef NET_OUTPUT_H
#define NET_OUTPUT_H

#include "net/server_thread.h"

/* Sends or queues pieces of `r`, which are one answer: where they pass the client's output limit,
 * together with what it was told before in this turn and what waits, nothing of them is sent, and
 * the client is marked for closing; so it is where what waits passes it. */
void output_ranges(struct client *c, const struct reply *r, const struct reply_range *ranges,
                   int count);
/* The same of pieces [begin, end). */
void output_pieces(struct client *c, const struct reply *r, uint32_t begin, uint32_t end);
/* The same of plain bytes (monitor lines, messages). */
void output_bytes(struct client *c, struct slice bytes);
/* The socket is writable, or something was kept for it: sends what waits. */
void output_flush(struct client *c);
/* Sends what the client's feed has, as far as the socket takes it; the client is closed when the
 * feed is over. */
void output_feed(struct client *c);
/* Whether nothing waits for the socket. */
bool output_is_empty(const struct client *c);
/* Frees what is queued. */
void output_discard(struct client *c);
/* Checks the soft limit's time (once a second); marks the client for closing. */
void output_check_limits(struct client *c);

/* From now on nothing is sent until output_flush: what comes is kept (CLIENT_COMMITTING). */
void output_hold(struct client *c);
/* What has been kept since output_hold will never be sent: these bytes are instead, and the client
 * is closed behind them. */
void output_break_off(struct client *c, struct slice bytes);

#endif
