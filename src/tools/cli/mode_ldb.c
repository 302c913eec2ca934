/* --ldb: see modes.h. */
#include <stdio.h>

#include "tools/cli/modes.h"
#include "tools/cli/repl.h"
#include "tools/cli/run.h"

static void print_words(void)
{
    printf("Lua debugging session started, please use:\n"
           "quit    -- End the session.\n"
           "restart -- Restart the script in debug mode again.\n"
           "help    -- Show Lua script debugging commands.\n\n");
}

/* SCRIPT DEBUG; a server that refuses it says why to EVAL, too. */
static void switch_debugger(struct session *s)
{
    struct words command = {NULL, 0};
    words_add_strings(&command, "SCRIPT", "DEBUG", s->o->ldb_sync ? "sync" : "yes", NULL);
    struct reply *reply = session_ask(s, &command);
    s->debugs_eval = reply != NULL && reply->type != REPLY_ERROR;
    reply_destroy(&reply);
    words_deinit(&command);
}

/* Runs the script to its first stop. */
static enum run_result begin(struct session *s)
{
    struct words command = {NULL, 0};
    if (!mode_eval_prepare(s->o, &command)) {
        return RUN_FAILED;
    }
    if (s->link == NULL && !session_connect(s)) {
        words_deinit(&command);
        return RUN_FAILED;
    }
    switch_debugger(s);
    enum run_result result = run_command(s, &command, false);
    words_deinit(&command);
    return result;
}

int mode_ldb(struct session *s)
{
    s->debugs_file = true;
    bool restarts = true;
    while (restarts) {
        print_words();
        if (begin(s) != RUN_OK) {
            return 1;
        }
        if (s->debug_ended) {
            printf("Eval debugging session can't start:\n");
            return run_last_reply(s) == RUN_OK ? 0 : 1;
        }
        restarts = repl_debug(s);
        if (restarts) {
            session_disconnect(s);
            printf("\n");
        }
    }
    return 0;
}
