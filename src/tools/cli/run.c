/* Runs one command: see run.h. */
#include "tools/cli/run.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/program.h"
#include "tools/cli/debug.h"
#include "tools/cli/format.h"
#include "tools/cli/number.h"

/* A cluster whose nodes disagree could send us round in circles. */
#define RUN_REDIRECTIONS_MAX 16

/* What a command does to the stream of replies. */
enum command_kind {
    KIND_PLAIN,
    KIND_VERBATIM,  /* the reply is text to be read as it is */
    KIND_SUBSCRIBE, /* messages follow */
    KIND_MONITOR,   /* lines follow, without end */
    KIND_SHUTDOWN,  /* success shows as a closed connection */
    KIND_NO_REPLY,  /* CLIENT REPLY OFF or SKIP */
    KIND_REFUSED,   /* the connection would turn into something else than replies */
};

struct kind_row {
    const char *word;
    const char *second; /* NULL: any */
    const char *third;  /* NULL: any */
    enum command_kind kind;
};

static const struct kind_row kind_rows[] = {
    {"info", NULL, NULL, KIND_VERBATIM},
    {"lolwut", NULL, NULL, KIND_VERBATIM},
    {"debug", "htstats", NULL, KIND_VERBATIM},
    {"debug", "htstats-key", NULL, KIND_VERBATIM},
    {"memory", "malloc-stats", NULL, KIND_VERBATIM},
    {"memory", "doctor", NULL, KIND_VERBATIM},
    {"cluster", "nodes", NULL, KIND_VERBATIM},
    {"cluster", "info", NULL, KIND_VERBATIM},
    {"client", "list", NULL, KIND_VERBATIM},
    {"client", "info", NULL, KIND_VERBATIM},
    {"latency", "graph", NULL, KIND_VERBATIM},
    {"latency", "doctor", NULL, KIND_VERBATIM},
    {"subscribe", NULL, NULL, KIND_SUBSCRIBE},
    {"psubscribe", NULL, NULL, KIND_SUBSCRIBE},
    {"ssubscribe", NULL, NULL, KIND_SUBSCRIBE},
    {"monitor", NULL, NULL, KIND_MONITOR},
    {"shutdown", NULL, NULL, KIND_SHUTDOWN},
    {"client", "reply", "off", KIND_NO_REPLY},
    {"client", "reply", "skip", KIND_NO_REPLY},
    {"sync", NULL, NULL, KIND_REFUSED},
    {"psync", NULL, NULL, KIND_REFUSED},
};

static enum command_kind kind_of(const struct words *command)
{
    for (size_t i = 0; i < sizeof(kind_rows) / sizeof(kind_rows[0]); i++) {
        const struct kind_row *row = &kind_rows[i];
        if (words_is(command, 0, row->word) &&
            (row->second == NULL || words_is(command, 1, row->second)) &&
            (row->third == NULL || words_is(command, 2, row->third))) {
            return row->kind;
        }
    }
    return KIND_PLAIN;
}

/* ---- printing ---- */

static void print_text(struct text *out)
{
    fwrite(out->data, 1, out->len, stdout);
    text_deinit(out);
}

static void print_reply(const struct session *s, const struct reply *reply, enum command_kind kind)
{
    struct text out;
    text_init(&out);
    if (kind == KIND_VERBATIM) {
        format_verbatim(&out, reply, s->o);
    } else {
        format_reply(&out, reply, s->o, s->output);
    }
    print_text(&out);
}

/* Lines of the script debugger. */
static void print_lines(struct session *s, const struct reply *reply)
{
    struct text out;
    text_init(&out);
    debug_format(s, &out, reply);
    print_text(&out);
}

static void print_push(const struct session *s, const struct reply *push)
{
    if (s->o->show_pushes) {
        struct text out;
        text_init(&out);
        format_push(&out, push, s->o);
        print_text(&out);
        fflush(stdout);
    }
}

/* ---- when the connection ends ---- */

/* The user hit Ctrl-C while we waited: the reply that may still come has no one to take it. */
static enum run_result give_up_waiting(struct session *s)
{
    session_interrupted = 0;
    fflush(stdout);
    return session_connect(s) ? RUN_INTERRUPTED : RUN_FAILED;
}

static enum run_result lost(struct session *s, enum link_status status)
{
    if (status == LINK_INTERRUPTED) {
        return give_up_waiting(s);
    }
    session_report_failure(s);
    return RUN_FAILED;
}

/* ---- messages ---- */

/* Lets single keys reach poll(); `saved` restores. False when standard input is no terminal. */
static bool terminal_by_key(struct termios *saved)
{
    if (tcgetattr(STDIN_FILENO, saved) != 0) {
        return false;
    }
    struct termios by_key = *saved;
    by_key.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    by_key.c_cc[VMIN] = 1;
    by_key.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &by_key) == 0;
}

/* Waits for a message or a key. True when it is a key (or the end of the input). */
static bool key_comes_first(const struct session *s)
{
    struct pollfd pfds[2] = {{link_socket(s->link), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    sigset_t block;
    sigset_t before;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigprocmask(SIG_BLOCK, &block, &before);
    int ready = session_interrupted != 0 ? 0 : ppoll(pfds, 2, NULL, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ready > 0 && pfds[1].revents != 0;
}

static enum run_result listen_loop(struct session *s, bool by_key, bool confirm)
{
    while (confirm || session_is_subscribed(s)) {
        struct reply *message;
        enum link_status status = link_read(s->link, by_key ? 0 : -1, &message);
        if (status == LINK_TIMEOUT) {
            if (key_comes_first(s)) {
                return RUN_OK;
            }
            continue; /* a message, or Ctrl-C: link_read() will tell */
        }
        if (status != LINK_OK) {
            return lost(s, status);
        }
        bool confirmed = session_note_subscription(s, message);
        bool refused = confirm && !confirmed && message->type != REPLY_PUSH;
        confirm = confirm && !confirmed;
        bool error = message->type == REPLY_ERROR;
        print_reply(s, message, KIND_PLAIN);
        fflush(stdout);
        reply_destroy(&message);
        if (refused) {
            return error ? RUN_ERROR_REPLY : RUN_OK; /* an error, or QUEUED */
        }
    }
    return RUN_OK;
}

enum run_result run_listen(struct session *s, bool confirm)
{
    struct termios saved;
    bool by_key = s->interactive && terminal_by_key(&saved);
    if (s->o->output != OUTPUT_RAW) {
        printf("Reading messages... (press Ctrl-C to quit%s)\n",
               by_key ? " or any key to type command" : "");
        fflush(stdout);
    }
    enum run_result result = listen_loop(s, by_key, confirm);
    if (by_key) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
    }
    return result;
}

/* MONITOR has answered OK; its lines never end. */
static enum run_result monitor_loop(struct session *s)
{
    for (;;) {
        struct reply *line;
        enum link_status status = link_read(s->link, -1, &line);
        if (status != LINK_OK) {
            return lost(s, status);
        }
        print_reply(s, line, KIND_PLAIN);
        fflush(stdout);
        reply_destroy(&line);
    }
}

/* ---- one command ---- */

/* Reads the reply to the command just sent. Pushes on the way are printed, except that those that
 * confirm a subscription are the reply to a command that subscribes. */
static enum link_status read_reply(struct session *s, struct reply **out)
{
    for (;;) {
        enum link_status status = link_read(s->link, -1, out);
        if (status != LINK_OK || (*out)->type != REPLY_PUSH) {
            return status;
        }
        if (session_note_subscription(s, *out)) {
            return LINK_OK;
        }
        print_push(s, *out);
        reply_destroy(out);
    }
}

/* "MOVED 1234 host:port" and "ASK 1234 host:port". */
static bool parse_redirection(const struct reply *reply, char **slot, char **host, int *port,
                              bool *ask)
{
    struct words words;
    if (reply->type != REPLY_ERROR || !words_split(reply->text, reply->len, &words)) {
        return false;
    }
    *ask = words_is(&words, 0, "ASK");
    bool good = words.count == 3 && (*ask || words_is(&words, 0, "MOVED"));
    if (good) {
        char *colon = strrchr(words.list[2].data, ':');
        long long number;
        good = colon != NULL && number_parse(colon + 1, 1, 65535, &number);
        if (good) {
            *port = (int)number;
            *host = tool_copy(words.list[2].data, (size_t)(colon - words.list[2].data));
            *slot = tool_strdup(words.list[1].data);
        }
    }
    words_deinit(&words);
    return good;
}

/* Goes where the error reply points to. False when it does not point anywhere. */
static bool follow_redirection(struct session *s, const struct reply *reply, bool *connected)
{
    char *slot;
    char *host;
    int port;
    bool ask;
    if (!s->o->cluster || !parse_redirection(reply, &slot, &host, &port, &ask)) {
        return false;
    }
    if (s->tells_redirections) {
        printf("-> Redirected to slot [%s] located at %s:%d\n", slot, host, port);
    }
    session_set_address(s, host[0] != '\0' ? host : s->host, port);
    *connected = session_connect(s);
    if (*connected && ask) {
        struct words asking = {NULL, 0};
        words_add_strings(&asking, "ASKING", NULL);
        struct reply *answer = session_ask(s, &asking);
        *connected = answer != NULL;
        reply_destroy(&answer);
        words_deinit(&asking);
    }
    free(slot);
    free(host);
    return true;
}

/* Sends, reads and prints. *redirected: the reply pointed elsewhere, run it again. */
static enum run_result run_once(struct session *s, const struct words *command,
                                enum command_kind kind, bool errors_apart, bool *redirected)
{
    enum link_status status = link_send(s->link, command->list, command->count);
    if (status != LINK_OK) {
        return lost(s, status);
    }
    bool unanswered = s->skip_next || (s->silent && !words_is(command, 2, "on"));
    if (kind == KIND_NO_REPLY || unanswered) {
        s->skip_next = false;
        session_note(s, command, NULL);
        return RUN_OK;
    }
    struct reply *reply;
    status = read_reply(s, &reply);
    if (status == LINK_CLOSED && kind == KIND_SHUTDOWN) {
        session_disconnect(s);
        return RUN_OK;
    }
    if (status != LINK_OK) {
        return lost(s, status);
    }
    bool connected = true;
    *redirected = follow_redirection(s, reply, &connected);
    enum run_result result = RUN_OK;
    if (*redirected) {
        result = connected ? RUN_OK : RUN_FAILED;
    } else {
        if (!s->debugging) {
            session_note(s, command, reply);
            (void)session_note_subscription(s, reply);
        }
        result = reply->type == REPLY_ERROR ? RUN_ERROR_REPLY : RUN_OK;
        if (s->debugging) {
            print_lines(s, reply);
        } else if (result == RUN_ERROR_REPLY && errors_apart) {
            fflush(stdout);
            fprintf(stderr, "%s\n", reply->text);
        } else {
            print_reply(s, reply, kind);
        }
        fflush(stdout);
    }
    reply_destroy(&reply);
    return result;
}

/* SUBSCRIBE with several channels answers once for each, and its answers look like messages. */
static enum run_result run_subscribe(struct session *s, const struct words *command)
{
    enum link_status status = link_send(s->link, command->list, command->count);
    return status == LINK_OK ? run_listen(s, true) : lost(s, status);
}

enum run_result run_command(struct session *s, const struct words *command, bool errors_apart)
{
    assert(command->count > 0);
    enum command_kind kind = s->debugging ? KIND_PLAIN : kind_of(command);
    session_interrupted = 0;
    if (kind == KIND_REFUSED) {
        fflush(stdout);
        fprintf(stderr, "%s: %s does not exist yet\n", program_name(), command->list[0].data);
        return RUN_FAILED;
    }
    if (s->link == NULL && !session_connect(s)) {
        return RUN_FAILED;
    }
    debug_note_command(s, command);
    if (kind == KIND_SUBSCRIBE && command->count > 1) {
        return run_subscribe(s, command);
    }
    enum run_result result = RUN_OK;
    bool redirected = true;
    for (int i = 0; i < RUN_REDIRECTIONS_MAX && redirected && result != RUN_FAILED; i++) {
        redirected = false;
        result = run_once(s, command, kind, errors_apart, &redirected);
    }
    if (redirected && result != RUN_FAILED) {
        fflush(stdout);
        fprintf(stderr, "Error: more than %d redirections\n", RUN_REDIRECTIONS_MAX);
        return RUN_FAILED;
    }
    bool answers = s->link != NULL && !s->silent && !s->in_multi;
    if (result == RUN_OK && kind == KIND_MONITOR && answers) {
        return monitor_loop(s);
    }
    return result;
}

static void pause_between(const struct session *s)
{
    if (s->o->interval_us > 0) {
        struct timespec pause = {(time_t)(s->o->interval_us / 1000000),
                                 (long)(s->o->interval_us % 1000000) * 1000};
        (void)nanosleep(&pause, NULL); /* Ctrl-C shortens it */
        fflush(stdout);
    }
}

enum run_result run_last_reply(struct session *s)
{
    struct reply *reply;
    enum link_status status = read_reply(s, &reply);
    if (status != LINK_OK) {
        return lost(s, status);
    }
    print_reply(s, reply, KIND_PLAIN);
    fflush(stdout);
    reply_destroy(&reply);
    return RUN_OK;
}

enum run_result run_repeatedly(struct session *s, const struct words *command, long long times,
                               bool errors_apart)
{
    enum run_result result = RUN_OK;
    session_interrupted = 0;
    for (long long i = 0; times < 0 || i < times; i++) {
        result = run_command(s, command, errors_apart);
        if (result == RUN_FAILED || result == RUN_INTERRUPTED ||
            (errors_apart && result == RUN_ERROR_REPLY)) {
            break;
        }
        pause_between(s);
        if (session_interrupted != 0) {
            return RUN_INTERRUPTED;
        }
    }
    return result;
}
