/* Asking a server for its data set: see transfer.h. */
#include "tools/cli/transfer.h"

#include <stdio.h>
#include <string.h>

/* A longer line before the data set is none: it is an error's text or nonsense. */
#define TRANSFER_LINE_MAX 1024

bool transfer_configure(struct session *s, const char *option, const char *value)
{
    struct words command = {NULL, 0};
    words_add_strings(&command, "REPLCONF", option, value, NULL);
    fprintf(stderr, "sending REPLCONF %s %s\n", option, value);
    struct reply *reply = session_ask(s, &command);
    words_deinit(&command);
    bool good = reply != NULL && reply->type != REPLY_ERROR;
    if (reply != NULL && !good) {
        fprintf(stderr, "REPLCONF %s error: %s\n", option, reply->text);
    }
    reply_destroy(&reply);
    return good;
}

/* Takes the first line that is not empty off the connection. */
static bool take_line(struct link *l, struct text *out)
{
    for (;;) {
        size_t len;
        const char *data = link_peek(l, &len);
        const char *end = memchr(data, '\n', len);
        if (end == NULL) {
            if (len > TRANSFER_LINE_MAX || link_more(l, -1) != LINK_OK) {
                return false;
            }
            continue;
        }
        size_t line = (size_t)(end - data);
        text_append(out, data, line > 0 && data[line - 1] == '\r' ? line - 1 : line);
        link_skip(l, line + 1);
        if (out->len > 0) {
            return true;
        }
    }
}

bool transfer_begin(struct session *s, struct payload *out)
{
    struct text line;
    text_init(&line);
    enum link_status sent = link_send_bytes(s->link, "SYNC\r\n", 6);
    bool good = false;
    if (sent != LINK_OK || !take_line(s->link, &line)) {
        fprintf(stderr, "Error reading bulk length while SYNCing\n");
    } else if (!payload_init(out, line.data, line.len)) {
        struct text shown;
        text_init(&shown);
        text_append_readable(&shown, line.data, line.len);
        fprintf(stderr, "SYNC with master failed: %s\n", shown.data);
        text_deinit(&shown);
    } else {
        good = true;
    }
    text_deinit(&line);
    return good;
}

bool transfer_receive(struct session *s, struct payload *p, payload_sink *sink, void *context)
{
    while (!p->done) {
        size_t len;
        const char *data = link_peek(s->link, &len);
        if (len == 0) {
            if (link_more(s->link, -1) != LINK_OK) {
                return false;
            }
            continue;
        }
        bool failed = false;
        size_t used = payload_take(p, data, len, sink, context, &failed);
        if (failed) {
            return false;
        }
        link_skip(s->link, used);
    }
    return true;
}
