/* --pipe: see modes.h.
 *
 * Standard input is sent while replies are read, so that neither side's buffers can fill up and
 * stop the other. Behind the last byte goes an ECHO of twenty random bytes: when they come back as
 * a reply, everything before has been answered, however many replies that took. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/modes.h"
#include "tools/common/reader.h"

#define PIPE_CHUNK_BYTES (64 * 1024)
#define PIPE_MAGIC_BYTES 20

struct pipe {
    struct link *link; /* borrowed */
    struct reader *reader;
    struct text out; /* read from standard input and not sent yet, from out_pos on */
    size_t out_pos;
    bool input_ended; /* the ECHO stands in `out` */
    char magic[PIPE_MAGIC_BYTES];
    long long replies;
    long long errors;
    long long last_ms; /* when something was sent or received last */
    bool timed_out;
    bool done;
};

static long long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Letters and digits, so that nothing in them looks like protocol if the input ended badly. */
static bool make_magic(char magic[PIPE_MAGIC_BYTES])
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    static_assert(sizeof(letters) - 1 == 64, "each random byte gives six bits");
    unsigned char random[PIPE_MAGIC_BYTES];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        fprintf(stderr, "Error: %s\n", strerror(errno));
        return false;
    }
    for (size_t i = 0; i < PIPE_MAGIC_BYTES; i++) {
        magic[i] = letters[random[i] % 64];
    }
    return true;
}

/* Takes more of standard input once the last piece is sent. False on a read error. */
static bool fill(struct pipe *p)
{
    if (p->out_pos < p->out.len || p->input_ended) {
        return true;
    }
    text_clear(&p->out);
    p->out_pos = 0;
    ssize_t n = read(STDIN_FILENO, text_reserve(&p->out, PIPE_CHUNK_BYTES), PIPE_CHUNK_BYTES);
    if (n < 0) {
        if (errno == EINTR || errno == EAGAIN) {
            return true;
        }
        fprintf(stderr, "Error reading from stdin: %s\n", strerror(errno));
        return false;
    }
    text_advance(&p->out, (size_t)n);
    if (n == 0) {
        p->input_ended = true;
        text_append_format(&p->out, "\r\n*2\r\n$4\r\nECHO\r\n$%d\r\n%.*s\r\n", PIPE_MAGIC_BYTES,
                           PIPE_MAGIC_BYTES, p->magic);
        printf("All data transferred. Waiting for the last reply...\n");
        fflush(stdout);
    }
    return true;
}

static bool send_some(struct pipe *p)
{
    ssize_t n = link_send_some(p->link, p->out.data + p->out_pos, p->out.len - p->out_pos);
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            return true;
        }
        fprintf(stderr, "Error writing to the server: %s\n", strerror(errno));
        return false;
    }
    p->out_pos += (size_t)n;
    p->last_ms = now_ms();
    return true;
}

static void count_reply(struct pipe *p, const struct reply *reply)
{
    if (reply->type == REPLY_PUSH) {
        return;
    }
    if (reply->type == REPLY_STRING && reply->len == PIPE_MAGIC_BYTES &&
        memcmp(reply->text, p->magic, PIPE_MAGIC_BYTES) == 0 && p->input_ended) {
        printf("Last reply received from server.\n");
        p->done = true;
        return;
    }
    p->replies++;
    if (reply->type == REPLY_ERROR) {
        fprintf(stderr, "%s\n", reply->text);
        p->errors++;
    }
}

static bool receive_some(struct pipe *p)
{
    char *room = reader_room(p->reader, PIPE_CHUNK_BYTES);
    ssize_t n = link_receive_some(p->link, room, PIPE_CHUNK_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return true;
    }
    if (n <= 0) {
        fprintf(stderr, "Error reading from the server: %s\n",
                n == 0 ? "Server closed the connection" : strerror(errno));
        return false;
    }
    p->last_ms = now_ms();
    reader_received(p->reader, (size_t)n);
    for (;;) {
        struct reply *reply;
        enum reader_result result = reader_next(p->reader, &reply);
        if (result == READER_ERROR) {
            fprintf(stderr, "Error reading from the server: %s\n", reader_error(p->reader));
            return false;
        }
        if (result == READER_MORE) {
            return true;
        }
        count_reply(p, reply);
        reply_destroy(&reply);
    }
}

/* Waits for something to do and does it. False when the transfer failed. */
static bool turn(struct pipe *p, int timeout_s)
{
    bool to_send = p->out_pos < p->out.len;
    struct pollfd pfds[2] = {
        {link_socket(p->link), (short)(POLLIN | (to_send ? POLLOUT : 0)), 0},
        {to_send || p->input_ended ? -1 : STDIN_FILENO, POLLIN, 0},
    };
    int wait_ms = -1;
    if (p->input_ended && !to_send && timeout_s > 0) {
        long long left_ms = p->last_ms + timeout_s * 1000LL - now_ms();
        if (left_ms <= 0) {
            fprintf(stderr, "No replies for %d seconds: exiting.\n", timeout_s);
            p->errors++;
            p->timed_out = true;
            return false;
        }
        wait_ms = (int)left_ms;
    }
    if (poll(pfds, 2, wait_ms) < 0 && errno != EINTR) {
        fprintf(stderr, "Error: %s\n", strerror(errno));
        return false;
    }
    if (pfds[1].revents != 0 && !fill(p)) {
        return false;
    }
    if ((pfds[0].revents & POLLOUT) != 0 && !send_some(p)) {
        return false;
    }
    bool readable = (pfds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    while (readable) {
        if (!receive_some(p)) {
            return false;
        }
        readable = link_pending(p->link) && !p->done;
    }
    return true;
}

int mode_pipe(struct session *s)
{
    struct pipe p;
    memset(&p, 0, sizeof(p));
    if (!make_magic(p.magic)) {
        return 1;
    }
    p.link = s->link;
    p.reader = reader_create();
    text_init(&p.out);
    p.last_ms = now_ms();
    bool good = true;
    while (good && !p.done) {
        good = turn(&p, s->o->pipe_timeout_s);
    }
    fflush(stderr);
    if (good || p.timed_out) {
        printf("errors: %lld, replies: %lld\n", p.errors, p.replies);
    }
    reader_destroy(&p.reader);
    text_deinit(&p.out);
    return good && p.errors == 0 ? 0 : 1;
}
