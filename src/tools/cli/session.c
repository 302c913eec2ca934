/* The conversation with a server: see session.h. */
#include "tools/cli/session.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/number.h"

/* A dead peer is noticed after about this long, also while waiting in BLPOP or SUBSCRIBE. */
#define SESSION_KEEPALIVE_S 15

volatile sig_atomic_t session_interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    session_interrupted = 1;
}

void session_init(struct session *s, const struct options *o)
{
    memset(s, 0, sizeof(*s));
    s->o = o;
    s->host = tool_strdup(o->host);
    s->port = o->port;
    s->unix_path = o->unix_path;
    s->user = o->user != NULL ? tool_strdup(o->user) : NULL;
    s->password = o->password != NULL ? tool_strdup(o->password) : NULL;
    s->db_wanted = o->db;
    s->output = o->output;
}

void session_deinit(struct session *s)
{
    session_disconnect(s);
    secure_context_destroy(&s->tls);
    free(s->host);
    free(s->user);
    free(s->password);
}

void session_catch_interrupts(struct session *s)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_interrupt; /* without SA_RESTART: waits are to end */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    s->interactive = true;
}

void session_disconnect(struct session *s)
{
    link_destroy(&s->link);
    s->db = 0;
    s->in_multi = false;
    s->silent = false;
    s->skip_next = false;
    s->channels = 0;
    s->shards = 0;
    s->debugs_eval = false;
    s->debugging = false;
    s->debug_ended = false;
}

void session_set_address(struct session *s, const char *host, int port)
{
    assert(port >= 1 && port <= 65535);
    session_disconnect(s);
    char *copy = tool_strdup(host); /* `host` may be our own */
    free(s->host);
    s->host = copy;
    s->port = port;
    s->unix_path = NULL;
}

bool session_is_subscribed(const struct session *s)
{
    return s->channels > 0 || s->shards > 0;
}

void session_report_failure(struct session *s)
{
    assert(s->link != NULL);
    fflush(stdout);
    fprintf(stderr, "Error: %s\n", link_error(s->link));
    session_disconnect(s);
}

struct reply *session_ask(struct session *s, const struct words *command)
{
    assert(s->link != NULL);
    struct reply *reply = NULL;
    enum link_status status = link_send(s->link, command->list, command->count);
    while (status == LINK_OK) {
        status = link_read(s->link, -1, &reply);
        if (status != LINK_OK || reply->type != REPLY_PUSH) {
            break;
        }
        reply_destroy(&reply);
    }
    if (status != LINK_OK) {
        session_report_failure(s);
        return NULL;
    }
    return reply;
}

/* ---- setting up a connection ---- */

/* Sends one set-up command. `label` names it in the report of an error reply; NULL keeps silent.
 * Returns whether it succeeded. */
static bool set_up(struct session *s, struct words *command, const char *label)
{
    struct reply *reply = session_ask(s, command);
    words_deinit(command);
    bool good = reply != NULL && reply->type != REPLY_ERROR;
    if (reply != NULL && !good && label != NULL) {
        fflush(stdout);
        fprintf(stderr, "%s failed: %s\n", label, reply->text);
    }
    reply_destroy(&reply);
    return good;
}

static bool authenticate(struct session *s)
{
    if (s->password == NULL) {
        return true;
    }
    struct words command = {NULL, 0};
    if (s->user != NULL) {
        words_add_strings(&command, "AUTH", s->user, s->password, NULL);
    } else {
        words_add_strings(&command, "AUTH", s->password, NULL);
    }
    return set_up(s, &command, "AUTH");
}

static bool select_database(struct session *s)
{
    if (s->db_wanted == 0) {
        return true;
    }
    char label[32];
    char number[16];
    snprintf(number, sizeof(number), "%d", s->db_wanted);
    snprintf(label, sizeof(label), "SELECT %s", number);
    struct words command = {NULL, 0};
    words_add_strings(&command, "SELECT", number, NULL);
    if (!set_up(s, &command, label)) {
        return false;
    }
    s->db = s->db_wanted;
    return true;
}

static bool choose_protocol(struct session *s)
{
    bool json = s->o->output == OUTPUT_JSON || s->o->output == OUTPUT_QUOTED_JSON;
    bool asked = s->o->protocol == PROTOCOL_RESP3;
    if (!asked && (s->o->protocol == PROTOCOL_RESP2 || !json)) {
        return true;
    }
    struct words command = {NULL, 0};
    words_add_strings(&command, "HELLO", "3", NULL);
    return set_up(s, &command, asked ? "HELLO 3" : NULL);
}

/* --verbose: where we are connected to. */
static void report_connection(const struct session *s)
{
    fflush(stdout);
    if (s->unix_path != NULL) {
        fprintf(stderr, "Connected to %s\n", s->unix_path);
    } else {
        fprintf(stderr, "Connected to %s:%d\n", s->host, s->port);
    }
}

/* Connects, and greets where TLS is wanted. False with `error` filled; *mine when it is about our
 * own side's files and names, not about the server. */
static bool open_link(struct session *s, char *error, bool *mine)
{
    *mine = false;
    if (s->o->tls.wanted && s->tls == NULL) {
        s->tls = secure_context_create(&s->o->tls, error);
        *mine = s->tls == NULL;
        if (*mine) {
            return false;
        }
    }
    s->link = s->unix_path != NULL
                  ? link_connect_unix(s->unix_path, 0, error)
                  : link_connect_tcp(s->host, s->port, 0, SESSION_KEEPALIVE_S, error);
    if (s->link != NULL && s->tls != NULL && !link_secure(s->link, s->tls, error)) {
        link_destroy(&s->link);
    }
    return s->link != NULL;
}

bool session_connect(struct session *s)
{
    char error[LINK_ERROR_BYTES];
    session_disconnect(s);
    bool mine;
    if (!open_link(s, error, &mine)) {
        fflush(stdout);
        if (mine) {
            fprintf(stderr, "Could not negotiate a TLS connection: %s\n", error);
        } else if (s->unix_path != NULL) {
            fprintf(stderr, "Could not connect to Redis at %s: %s\n", s->unix_path, error);
        } else {
            fprintf(stderr, "Could not connect to Redis at %s:%d: %s\n", s->host, s->port, error);
        }
        return false;
    }
    link_set_interrupt(s->link, &session_interrupted);
    if (s->o->verbose) {
        report_connection(s);
    }
    if (authenticate(s) && select_database(s)) {
        (void)choose_protocol(s); /* reported; the connection works either way */
    }
    return s->link != NULL;
}

/* ---- what commands change ---- */

static void replace(char **where, const char *text)
{
    char *copy = text != NULL ? tool_strdup(text) : NULL;
    free(*where);
    *where = copy;
}

static void note_select(struct session *s, const struct words *command)
{
    long long db;
    if (command->count == 2 && number_parse(command->list[1].data, 0, INT_MAX, &db)) {
        s->db = (int)db;
        s->db_wanted = s->db;
    }
}

static void note_auth(struct session *s, const struct words *command)
{
    if (command->count == 2) {
        replace(&s->user, NULL);
        replace(&s->password, command->list[1].data);
    } else if (command->count == 3) {
        replace(&s->user, command->list[1].data);
        replace(&s->password, command->list[2].data);
    }
}

static void end_multi(struct session *s, bool undone)
{
    s->in_multi = false;
    if (undone) {
        s->db = s->db_at_multi; /* a queued SELECT did not run */
        s->db_wanted = s->db;
    }
}

static void note_client_reply(struct session *s, const struct words *command)
{
    if (words_is(command, 1, "reply") && command->count == 3) {
        s->silent = words_is(command, 2, "off");
        s->skip_next = words_is(command, 2, "skip");
    }
}

void session_note(struct session *s, const struct words *command, const struct reply *reply)
{
    bool failed = reply != NULL && reply->type == REPLY_ERROR;
    if (words_is(command, 0, "exec") && s->in_multi) {
        end_multi(s, failed || (reply != NULL && reply->type == REPLY_NIL));
    }
    if (failed) {
        return;
    }
    if (words_is(command, 0, "select")) {
        note_select(s, command);
    } else if (words_is(command, 0, "auth")) {
        note_auth(s, command);
    } else if (words_is(command, 0, "multi") && command->count == 1) {
        s->in_multi = true;
        s->db_at_multi = s->db;
    } else if (words_is(command, 0, "discard") && s->in_multi) {
        end_multi(s, true);
    } else if (words_is(command, 0, "client")) {
        note_client_reply(s, command);
    } else if (words_is(command, 0, "reset")) {
        s->in_multi = false;
        s->db = 0;
        s->db_wanted = 0;
        s->channels = 0;
        s->shards = 0;
    }
}

bool session_note_subscription(struct session *s, const struct reply *message)
{
    if ((message->type != REPLY_ARRAY && message->type != REPLY_PUSH) || message->count != 3 ||
        message->items[2].type != REPLY_INTEGER) {
        return false;
    }
    const struct reply *kind = &message->items[0];
    if (reply_text_is(kind, "ssubscribe") || reply_text_is(kind, "sunsubscribe")) {
        s->shards = message->items[2].integer;
        return true;
    }
    if (reply_text_is(kind, "subscribe") || reply_text_is(kind, "unsubscribe") ||
        reply_text_is(kind, "psubscribe") || reply_text_is(kind, "punsubscribe")) {
        s->channels = message->items[2].integer;
        return true;
    }
    return false;
}

void session_prompt(const struct session *s, struct text *out)
{
    if (s->link == NULL) {
        text_append_string(out, "not connected> ");
        return;
    }
    if (s->debugging && s->debugs_file) {
        text_append_string(out, "lua debugger> ");
        return;
    }
    if (s->unix_path != NULL) {
        text_append_format(out, "redis %s", s->unix_path);
    } else if (strchr(s->host, ':') != NULL) {
        text_append_format(out, "[%s]:%d", s->host, s->port);
    } else {
        text_append_format(out, "%s:%d", s->host, s->port);
    }
    if (s->db != 0) {
        text_append_format(out, "[%d]", s->db);
    }
    if (s->in_multi) {
        text_append_string(out, "(TX)");
    }
    if (session_is_subscribed(s)) {
        text_append_string(out, "(subscribed mode)");
    }
    text_append_string(out, "> ");
}
