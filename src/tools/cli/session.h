/* The conversation with a server: where it is, who we are, which database and protocol are in use,
 * and what state our commands have put the connection into.
 *
 * State: one, owned by main(); no locks. Failures are told to the user on standard error here;
 * callers only learn that there was one. */
#ifndef TOOLS_CLI_SESSION_H
#define TOOLS_CLI_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include "tools/cli/options.h"
#include "tools/common/link.h"
#include "tools/common/text.h"
#include "tools/common/words.h"

struct session {
    const struct options *o;
    struct link *link; /* NULL: not connected */

    /* what a new connection is set up with; commands that succeed change it */
    char *host;
    int port;
    const char *unix_path; /* NULL: TCP */
    char *user;
    char *password;
    int db_wanted;
    struct secure_context *tls; /* made when it is first needed; NULL before, and without TLS */

    /* the state of this connection */
    int db;          /* selected on the server */
    int db_at_multi; /* `db` when MULTI was sent */
    bool in_multi;
    bool silent;        /* CLIENT REPLY OFF: no replies come */
    bool skip_next;     /* CLIENT REPLY SKIP: the next command gets no reply */
    long long channels; /* subscriptions to channels and patterns */
    long long shards;   /* subscriptions to shard channels */

    bool debugs_eval; /* SCRIPT DEBUG: the next EVAL begins a session of the script debugger */
    bool debugging;   /* it has: what we send are the debugger's words, replies are its lines */
    bool debug_ended; /* its last line has come: what comes next is the script's reply */

    enum output_style output; /* of replies: as o->output, but see debug.h */
    bool debugs_file;         /* by --ldb: `restart` works, and the prompt tells of it */
    bool tells_redirections;  /* commands come line by line: say where they were sent on to */
    bool interactive;         /* a person at a prompt: Ctrl-C ends waits, not the program */
};

/* Prepares a session that is not connected. `o` must outlive it. */
void session_init(struct session *s, const struct options *o);
void session_deinit(struct session *s);

/* Raised by SIGINT once session_catch_interrupts() has been called: the wait for a reply then
 * ends. Whoever starts a new command lowers it. */
extern volatile sig_atomic_t session_interrupted;
void session_catch_interrupts(struct session *s);

/* Connects (anew), authenticates, selects the database and the protocol. False when there is no
 * connection; a refused AUTH, SELECT or HELLO is reported and leaves the connection usable. */
bool session_connect(struct session *s);

/* Closes the connection, if any, and forgets its state. */
void session_disconnect(struct session *s);

/* Another server from now on: closes the connection and remembers the address. */
void session_set_address(struct session *s, const char *host, int port);

/* Whether replies are messages now: SUBSCRIBE and its kin are in force. */
bool session_is_subscribed(const struct session *s);

/* Takes note of what a command that got `reply` has changed: database, transaction, identity. */
void session_note(struct session *s, const struct words *command, const struct reply *reply);

/* Takes note of a message or push that tells the number of subscriptions. True when it was one. */
bool session_note_subscription(struct session *s, const struct reply *message);

/* "127.0.0.1:6379[1](TX)> " and its variants. */
void session_prompt(const struct session *s, struct text *out);

/* Sends a command and reads its reply, past any pushes, which are dropped. NULL when the
 * connection failed: reported, and closed. */
struct reply *session_ask(struct session *s, const struct words *command);

/* Reports the link's error ("Error: ...") and disconnects. */
void session_report_failure(struct session *s);

#endif
