/* keydb-cli: the command line and the prompt for a KeyDB or Redis server. Decides what is to be
 * done; the doing is elsewhere. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "tools/cli/editor.h"
#include "tools/cli/help.h"
#include "tools/cli/modes.h"
#include "tools/cli/options.h"
#include "tools/cli/repl.h"
#include "tools/cli/run.h"
#include "tools/cli/session.h"

/* Reads standard input to its end. False on an error, which is reported. */
static bool read_stdin(struct text *out)
{
    for (;;) {
        ssize_t n = read(STDIN_FILENO, text_reserve(out, 65536), 65536);
        if (n == 0) {
            return true;
        }
        if (n > 0) {
            text_advance(out, (size_t)n);
        } else if (errno != EINTR) {
            fprintf(stderr, "Error reading from stdin: %s\n", strerror(errno));
            return false;
        }
    }
}

/* -x adds standard input as the last argument, -X puts it in the place of a tag. */
static bool add_stdin(const struct options *o, struct words *command)
{
    if (!o->stdin_last_arg && o->stdin_tag == NULL) {
        return true;
    }
    struct text input;
    text_init(&input);
    bool good = read_stdin(&input);
    if (good && o->stdin_last_arg) {
        words_add(command, input.data, input.len);
    } else if (good) {
        size_t at = 0;
        while (at < command->count && strcmp(command->list[at].data, o->stdin_tag) != 0) {
            at++;
        }
        good = at < command->count;
        if (good) {
            free(command->list[at].data);
            command->list[at].data = tool_copy(input.data, input.len);
            command->list[at].len = input.len;
        } else {
            fprintf(stderr, "Using -X option but stdin tag not match.\n");
        }
    }
    text_deinit(&input);
    return good;
}

/* One command from the command line. */
static int run_one_shot(struct session *s, struct words *command)
{
    const struct options *o = s->o;
    if (help_is_asked(command)) {
        return repl_help(s, command);
    }
    if (!add_stdin(o, command)) {
        return 1;
    }
    enum run_result result = run_repeatedly(s, command, o->repeat, o->fail_on_error);
    bool bad = result == RUN_FAILED || (o->fail_on_error && result == RUN_ERROR_REPLY);
    return bad ? 1 : 0;
}

static int run_commands(struct session *s)
{
    const struct options *o = s->o;
    struct words command = {NULL, 0};
    if (o->mode == MODE_EVAL && o->ldb) {
        return mode_ldb(s);
    }
    if (o->mode == MODE_EVAL) {
        if (!mode_eval_prepare(o, &command)) {
            return 1;
        }
    } else if (o->command.count == 0) {
        return repl_run(s);
    } else {
        for (size_t i = 0; i < o->command.count; i++) {
            words_add(&command, o->command.list[i].data, o->command.list[i].len);
        }
    }
    int status = run_one_shot(s, &command);
    words_deinit(&command);
    return status;
}

/* What is done with a connection, other than commands. */
static int run_connected(struct session *s)
{
    switch (s->o->mode) {
    case MODE_SCAN:
        return mode_scan(s);
    case MODE_STAT:
        return mode_stat(s);
    case MODE_LATENCY:
    case MODE_LATENCY_HISTORY:
        return mode_latency(s);
    case MODE_LATENCY_DIST:
        return mode_latency_dist(s);
    case MODE_LRU_TEST:
        return mode_lru_test(s);
    case MODE_PIPE:
        return mode_pipe(s);
    case MODE_RDB:
    case MODE_FUNCTIONS_RDB:
        return mode_rdb(s);
    case MODE_REPLICA:
        return mode_replica(s);
    case MODE_BIGKEYS:
    case MODE_MEMKEYS:
        return mode_bigkeys(s);
    case MODE_HOTKEYS:
        return mode_hotkeys(s);
    case MODE_KEYSTATS:
        return mode_keystats(s);
    default:
        abort();
    }
}

static int run_mode(struct session *s)
{
    switch (s->o->mode) {
    case MODE_COMMAND:
    case MODE_EVAL:
        return run_commands(s);
    case MODE_INTRINSIC_LATENCY:
        return mode_intrinsic_latency(s);
    default:
        return session_connect(s) ? run_connected(s) : 1;
    }
}

/* Whether characters are UTF-8 decides how wide the editor takes them to be. */
static void set_locale(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct session s;
    program_setup("keydb-cli", argv[0]);
    set_locale();
    signal(SIGPIPE, SIG_IGN);
    cli_options_parse(&o, argc, argv);
    char *secret = NULL;
    if (o.ask_password) {
        secret = editor_read_secret("Please input password: ");
        if (secret == NULL) {
            fprintf(stderr, "No password was given.\n");
            cli_options_deinit(&o);
            return 1;
        }
        o.password = secret;
    }
    session_init(&s, &o);
    int status = run_mode(&s);
    session_deinit(&s);
    cli_options_deinit(&o);
    free(secret);
    if (fflush(stdout) != 0 && status == 0) {
        status = 1;
    }
    return status;
}
