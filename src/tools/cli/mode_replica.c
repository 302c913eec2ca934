/* --replica: see modes.h. */
#include <stdio.h>

#include "tools/cli/format.h"
#include "tools/cli/modes.h"
#include "tools/cli/transfer.h"

/* The acknowledgement is repeated so often. */
#define REPLICA_ACK_MS 1000

static bool drop(void *context, const char *data, size_t len)
{
    (void)context;
    (void)data;
    (void)len;
    return true;
}

/* Behind a marked data set the stream begins with the replica's word, which may come too early to
 * be heard: it is said again while nothing comes. It has no answer. */
static enum link_status acknowledge(struct session *s)
{
    struct words ack = {NULL, 0};
    words_add_strings(&ack, "REPLCONF", "ACK", "0", NULL);
    enum link_status status = link_send(s->link, ack.list, ack.count);
    words_deinit(&ack);
    return status;
}

/* The data set, which nobody wants: the filter asks for an empty one. */
static bool pass_data_set(struct session *s, bool *marked)
{
    struct payload p;
    if (!transfer_begin(s, &p)) {
        return false;
    }
    *marked = p.marked;
    if (p.marked) {
        fprintf(stderr, "Full resync with master, discarding bytes of bulk transfer until EOF "
                        "marker...\n");
    } else {
        fprintf(stderr, "Full resync with master, discarding %llu bytes of bulk transfer...\n",
                p.announced);
    }
    bool good = transfer_receive(s, &p, drop, NULL);
    if (!good) {
        fprintf(stderr, "Error reading RDB payload while Full resyncing\n");
    } else if (p.marked) {
        fprintf(stderr,
                "Full resync done after %llu bytes. Logging commands from master.\n"
                "sending REPLCONF ACK 0\n",
                p.taken_bytes + PAYLOAD_MARK_BYTES);
    } else {
        fprintf(stderr, "Full resync done. Logging commands from master.\n");
    }
    payload_deinit(&p);
    return good;
}

/* Drops the empty lines that come next: they are signs of life. */
static void skip_empty_lines(struct link *l)
{
    size_t len;
    const char *data = link_peek(l, &len);
    size_t count = 0;
    while (count < len && data[count] == '\n') {
        count++;
    }
    link_skip(l, count);
}

/* Waits for the next command. */
static enum link_status next_command(struct session *s, bool marked, struct reply **out)
{
    enum link_status status = marked ? acknowledge(s) : LINK_OK;
    size_t len = 0;
    while (status == LINK_OK) {
        skip_empty_lines(s->link);
        (void)link_peek(s->link, &len);
        if (len > 0) {
            return link_read(s->link, -1, out);
        }
        status = link_more(s->link, marked ? REPLICA_ACK_MS : -1);
        if (status == LINK_TIMEOUT) {
            status = acknowledge(s);
        }
    }
    return status;
}

/* Prints what comes. Ends when the connection does. */
static void print_stream(struct session *s, bool marked)
{
    struct reply *reply;
    while (next_command(s, marked, &reply) == LINK_OK) {
        struct text line;
        text_init(&line);
        format_reply(&line, reply, s->o, OUTPUT_CSV);
        fwrite(line.data, 1, line.len, stdout);
        fflush(stdout);
        text_deinit(&line);
        reply_destroy(&reply);
        marked = false; /* it has begun */
    }
    session_report_failure(s);
}

int mode_replica(struct session *s)
{
    bool marked;
    (void)transfer_configure(s, "capa", "eof");
    if (s->link != NULL) {
        (void)transfer_configure(s, "rdb-filter-only", "");
    }
    if (s->link != NULL && pass_data_set(s, &marked)) {
        print_stream(s, marked);
    }
    return 1;
}
