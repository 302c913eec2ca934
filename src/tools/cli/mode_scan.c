/* --scan: see modes.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/cli/modes.h"
#include "tools/cli/walk.h"

/* SCAN cursor [MATCH pattern] [COUNT n] */
static struct reply *scan_once(struct session *s, const char *cursor)
{
    const struct options *o = s->o;
    struct words command = {NULL, 0};
    words_add_strings(&command, "SCAN", cursor, NULL);
    if (o->pattern != NULL) {
        words_add_strings(&command, "MATCH", NULL);
        words_add(&command, o->pattern, o->pattern_len);
    }
    if (o->scan_count > 0) {
        char number[24];
        snprintf(number, sizeof(number), "%lld", o->scan_count);
        words_add_strings(&command, "COUNT", number, NULL);
    }
    struct reply *reply = session_ask(s, &command);
    words_deinit(&command);
    return reply;
}

static void print_keys(const struct options *o, const struct reply *keys)
{
    struct text out;
    text_init(&out);
    for (size_t i = 0; i < keys->count; i++) {
        const struct reply *key = &keys->items[i];
        if (o->output == OUTPUT_TTY) {
            text_append_quoted(&out, key->text, key->len);
        } else {
            text_append(&out, key->text, key->len);
        }
        text_append_char(&out, '\n');
    }
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    text_deinit(&out);
}

static void pause_us(long long us)
{
    struct timespec pause = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    (void)nanosleep(&pause, NULL);
}

int mode_scan(struct session *s)
{
    char cursor[WALK_CURSOR_MAX + 1] = "0";
    do {
        struct reply *reply = scan_once(s, cursor);
        if (reply == NULL) {
            return 1;
        }
        if (!walk_is_page(reply)) {
            fprintf(stderr, "ERROR: %s\n",
                    reply->type == REPLY_ERROR ? reply->text : "Unexpected reply to SCAN");
            reply_destroy(&reply);
            return 1;
        }
        snprintf(cursor, sizeof(cursor), "%s", reply->items[0].text);
        print_keys(s->o, &reply->items[1]);
        reply_destroy(&reply);
        if (s->o->interval_us > 0) {
            pause_us(s->o->interval_us);
        }
    } while (strcmp(cursor, "0") != 0);
    return 0;
}
