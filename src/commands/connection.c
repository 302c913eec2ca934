/* Commands about the connection itself that need nothing of the network: PING, ECHO, SELECT, and
 * the introduction of a client, AUTH and HELLO. */
#include "commands/commands.h"
#include "engine/acl_log.h"
#include "engine/auth.h"
#include "engine/call.h"
#include "engine/identity.h"
#include "engine/modules.h"
#include "engine/shutdown.h"

#include <assert.h>

PLAIN_COMMAND(connection_ping)
{
    unsigned flags;
    if (c->argc > 2) {
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", c->cmd->full_name);
    } else if (unlikely(shutdown_is_soft(&flags))) {
        reply_error(c->reply, "ERR The server is shutting down softly");
    } else if (c->session->subscriptions > 0 && c->session->proto == 2) {
        reply_array(c->reply, 2); /* in the form of a message */
        reply_bulk_cstr(c->reply, "pong");
        reply_bulk(c->reply, c->argc == 2 ? c->argv[1] : SLICE(""));
    } else if (c->argc == 2) {
        reply_bulk(c->reply, c->argv[1]);
    } else {
        reply_status(c->reply, "PONG");
    }
}

PLAIN_COMMAND(connection_echo)
{
    reply_bulk(c->reply, c->argv[1]);
}

PLAIN_COMMAND(connection_select)
{
    int64_t index;
    if (!call_arg_i64(c, 1, &index)) {
        return;
    }
    if (index < INT32_MIN || index > INT32_MAX) {
        reply_error(c->reply, "ERR value is out of range, value must between -2147483648 and "
                              "2147483647");
        return;
    }
    if (index < 0 || index >= db_count()) {
        reply_error(c->reply, "ERR DB index is out of range");
        return;
    }
    c->session->db_index = (int)index;
    reply_ok(c->reply);
}

/* Keys are found, and users checked, the same way in all databases: who runs the calls behind it
 * gives them the new one (turn.c). */
static bool select_is_barrier(const struct call *c UNUSED)
{
    return false;
}

/* ---- AUTH and HELLO ---- */

/* Authenticates the session; false with WRONGPASS replied, or nothing by a call that waits. */
static bool connection_authenticate(struct call *c, struct slice user, struct slice password)
{
    if (c->held == ACCESS_SHARED && auth_wants_exclusive(c->session)) {
        call_need_exclusive(c);
        return false;
    }
    struct buf error = {0};
    enum auth_answer answer = auth_ask(c, user, password, &error);
    bool granted = answer == AUTH_GRANTED;
    if (answer == AUTH_LEFT) {
        granted = auth_check(c->session, user, password);
        if (!granted) {
            /* One that has waited is another thread's client, which cannot be looked at. */
            static const struct session unseen;
            acl_log_note(c->retry ? &unseen : c->session, c->cmd, ACL_DENIED_AUTH,
                         c->nested ? ACL_CONTEXT_MULTI : ACL_CONTEXT_TOPLEVEL, user, c->argv[0]);
        }
    }
    if (!granted && answer != AUTH_WAITS) {
        reply_error_slice(
            c->reply, error.len > 0
                          ? buf_slice(&error)
                          : SLICE("WRONGPASS invalid username-password pair or user is disabled."));
    }
    buf_deinit(&error);
    return granted;
}

/* A module may be asked, which has others look. */
static bool auth_may_wait(const struct call *c UNUSED)
{
    return auth_has_asker();
}

PLAIN_COMMAND(connection_auth)
{
    if (c->argc > 3) {
        reply_syntax_error(c->reply);
        return;
    }
    struct slice user = SLICE("default");
    if (c->argc == 3) {
        user = c->argv[1];
    } else if (auth_default_takes_any()) {
        reply_error(c->reply, "ERR AUTH <password> called without any password configured for the "
                              "default user. Are you sure your configuration is correct?");
        return;
    }
    if (connection_authenticate(c, user, c->argv[c->argc - 1])) {
        reply_ok(c->reply);
    }
}

/* What HELLO asks for, before anything of it is done. */
struct hello {
    int proto;                                  /* 0: as it is */
    const struct slice *user, *password, *name; /* NULL when not given */
};

/* Names are shown in lists whose fields are parted by blanks. */
static bool hello_name_is_valid(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] < '!' || name.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

/* Reads HELLO's arguments; false with the error replied. */
static bool hello_parse(struct call *c, struct hello *h)
{
    *h = (struct hello){0};
    if (c->argc >= 2) {
        int64_t proto;
        if (!call_arg_i64_error(c, 1, &proto,
                                "ERR Protocol version is not an integer or out of range")) {
            return false;
        }
        if (proto < 2 || proto > 3) {
            reply_error(c->reply, "NOPROTO unsupported protocol version");
            return false;
        }
        h->proto = (int)proto;
    }
    for (int i = 2; i < c->argc; i++) {
        int more = c->argc - 1 - i;
        if (call_arg_is(c, i, "auth") && more >= 2) {
            h->user = &c->argv[i + 1];
            h->password = &c->argv[i + 2];
            i += 2;
        } else if (call_arg_is(c, i, "setname") && more >= 1) {
            h->name = &c->argv[i + 1];
            if (!hello_name_is_valid(*h->name)) {
                reply_error(c->reply, "ERR Client names cannot contain spaces, newlines or special "
                                      "characters.");
                return false;
            }
            i++;
        } else {
            reply_errorf(c->reply, "ERR Syntax error in HELLO option '%.*s'",
                         (int)(c->argv[i].len < 128 ? c->argv[i].len : 128), c->argv[i].ptr);
            return false;
        }
    }
    return true;
}

static void hello_reply(struct call *c)
{
    struct reply *r = c->reply;
    reply_map(r, 7);
    reply_bulk_cstr(r, "server");
    reply_bulk_cstr(r, "redis");
    reply_bulk_cstr(r, "version");
    reply_bulk_cstr(r, identity_version());
    reply_bulk_cstr(r, "proto");
    reply_i64(r, c->session->proto);
    reply_bulk_cstr(r, "id");
    reply_i64(r, (int64_t)c->session->id);
    reply_bulk_cstr(r, "mode");
    reply_bulk_cstr(r, "standalone");
    reply_bulk_cstr(r, "role");
    reply_bulk_cstr(r, identity_is_replica() ? "replica" : "master");
    reply_bulk_cstr(r, "modules");
    modules_reply_list(r);
}

/* Who authenticates may do something else afterwards, and who listens in RESP3. */
static bool hello_is_barrier(const struct call *c)
{
    return c->argc > 2 || c->session->subscriptions > 0;
}

static bool hello_may_wait(const struct call *c)
{
    return c->argc > 2 && auth_has_asker();
}

PLAIN_COMMAND(connection_hello)
{
    struct hello h;
    if (!hello_parse(c, &h)) {
        return;
    }
    if (h.user && !connection_authenticate(c, *h.user, *h.password)) {
        return;
    }
    if (!c->session->authenticated) {
        reply_error(c->reply,
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise "
                    "the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
                    "client and select the RESP protocol version at the same time");
        return;
    }
    if (h.name) {
        bool valid = session_set_name(c->session, *h.name);
        assert(valid);
        (void)valid;
    }
    if (h.proto) {
        if (h.proto != c->session->proto) { /* a call that has waited runs on any thread */
            c->session->proto = h.proto;
        }
        reply_set_proto(c->reply, h.proto);
    }
    hello_reply(c);
}

const struct command_row connection_commands[] = {
    {.name = "auth",
     .run = connection_auth,
     .arity = -2,
     .flags = CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST | CMD_NO_AUTH | CMD_SENTINEL |
              CMD_ALLOW_BUSY | CMD_BARRIER | CMD_WAITS_QUIETLY,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Proves who the client is, by password or by user name and password.",
     .complexity = "O(N) where N is the number of passwords the user has",
     .args = "[username] password",
     .history = "6.0.0:Takes a user name as well.",
     .may_wait = auth_may_wait},
    {.name = "echo",
     .run = connection_echo,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE | CMD_FAST,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Sends the message back.",
     .complexity = "O(1)",
     .args = "message"},
    {.name = "hello",
     .run = connection_hello,
     .arity = -1,
     .flags = CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST | CMD_NO_AUTH | CMD_SENTINEL |
              CMD_ALLOW_BUSY | CMD_BARRIER | CMD_WAITS_QUIETLY,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "6.0.0",
     .summary =
         "Greets the server: agrees on the protocol, and may authenticate and name the client.",
     .complexity = "O(1)",
     .args = "[protover [AUTH username password] [SETNAME clientname]]",
     .history = "6.2.0:The protocol version may be left out.",
     .is_barrier = hello_is_barrier,
     .may_wait = hello_may_wait},
    {.name = "ping",
     .run = connection_ping,
     .arity = -1,
     .flags = CMD_FAST | CMD_SENTINEL | CMD_SUBSCRIBED,
     .categories = CATEGORY_CONNECTION | CATEGORY_REPLICATION,
     .tips = "request_policy:all_shards,response_policy:all_succeeded",
     .group = "connection",
     .since = "1.0.0",
     .summary = "Shows that the server answers.",
     .complexity = "O(1)",
     .args = "[message]",
     .is_probe = true},
    {.name = "replping",
     .run = connection_ping,
     .arity = -1,
     .flags = CMD_FAST | CMD_STALE,
     .categories = CATEGORY_REPLICATION,
     .group = "connection",
     .since = "6.3.0",
     .summary = "Shows a replica that the server answers; PING as KeyDB's replicas say it.",
     .complexity = "O(1)",
     .args = "[message]"},
    {.name = "select",
     .run = connection_select,
     .arity = 2,
     .flags = CMD_LOADING | CMD_STALE | CMD_FAST | CMD_BARRIER,
     .categories = CATEGORY_CONNECTION,
     .group = "connection",
     .since = "1.0.0",
     .summary = "Chooses the database that this connection works on.",
     .complexity = "O(1)",
     .args = "index",
     .is_barrier = select_is_barrier},
    {.name = NULL},
};
