/* --stat: see modes.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cli/modes.h"
#include "tools/cli/number.h"

/* The heading is repeated after this many rows. */
#define STAT_ROWS 20

/* The number behind "name:" at the start of a line of INFO; -1 when there is none. */
static long long info_number(const char *info, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = info; line != NULL && *line != '\0';) {
        if (strncmp(line, name, len) == 0 && line[len] == ':') {
            return strtoll(line + len + 1, NULL, 10);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return -1;
}

/* The sum of "dbN:keys=..." over all databases. */
static long long info_keys(const char *info)
{
    long long sum = 0;
    for (const char *line = info; line != NULL && *line != '\0';) {
        size_t digits = strncmp(line, "db", 2) == 0 ? strspn(line + 2, "0123456789") : 0;
        if (digits > 0 && strncmp(line + 2 + digits, ":keys=", 6) == 0) {
            sum += strtoll(line + 2 + digits + 6, NULL, 10);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return sum;
}

static const char *child_state(const char *info)
{
    if (info_number(info, "bgsave_in_progress") == 1 ||
        info_number(info, "rdb_bgsave_in_progress") == 1) {
        return "SAVE";
    }
    if (info_number(info, "aof_rewrite_in_progress") == 1) {
        return "AOF";
    }
    return info_number(info, "loading") == 1 ? "LOAD" : "";
}

static void print_heading(void)
{
    printf("------- data ------ --------------------- load -------------------- - child -\n"
           "keys       mem      clients blocked requests            connections          \n");
}

static void print_row(const char *info, long long *requests_before)
{
    char memory[NUMBER_HUMAN_BYTES];
    char requests[64];
    long long total = info_number(info, "total_commands_processed");
    number_human_bytes(memory, info_number(info, "used_memory"));
    snprintf(requests, sizeof(requests), "%lld (+%lld)", total,
             *requests_before == 0 ? 0 : total - *requests_before);
    *requests_before = total;
    printf("%-11lld%-9s%-8lld%-8lld%-20s%-12lld%s\n", info_keys(info), memory,
           info_number(info, "connected_clients"), info_number(info, "blocked_clients"), requests,
           info_number(info, "total_connections_received"), child_state(info));
    fflush(stdout);
}

int mode_stat(struct session *s)
{
    long long pause_us = s->o->interval_given ? s->o->interval_us : 1000000;
    long long requests_before = 0;
    struct words command = {NULL, 0};
    words_add_strings(&command, "INFO", NULL);
    int status = 1;
    for (long long row = 0; !s->o->repeat_given || s->o->repeat < 0 || row < s->o->repeat; row++) {
        if (s->link == NULL && !session_connect(s)) {
            break;
        }
        struct reply *reply = session_ask(s, &command);
        if (reply == NULL || (reply->type != REPLY_STRING && reply->type != REPLY_VERBATIM)) {
            if (reply != NULL) {
                fprintf(stderr, "ERROR: %s\n",
                        reply->type == REPLY_ERROR ? reply->text : "Unexpected reply to INFO");
            }
            reply_destroy(&reply);
            break;
        }
        if (row % STAT_ROWS == 0) {
            print_heading();
        }
        print_row(reply->text, &requests_before);
        reply_destroy(&reply);
        struct timespec pause = {(time_t)(pause_us / 1000000), (long)(pause_us % 1000000) * 1000};
        (void)nanosleep(&pause, NULL);
    }
    if (s->o->repeat_given && s->link != NULL) {
        status = 0;
    }
    words_deinit(&command);
    return status;
}
