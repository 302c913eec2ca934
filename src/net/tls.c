/* See tls.h. */
#include "net/tls.h"

#include "base/buf.h"
#include "base/mem.h"
#include "net/sys.h"
#include "net/tls_context.h"
#include "net/tls_names.h"
#include "net/tls_settings.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* Plaintext of one record (RFC 8446, 5.1): what is sent at a time. */
#define RECORD_BYTES SSL3_RT_MAX_PLAIN_LENGTH
/* Plaintext of one tls_send: others wait meanwhile. */
#define SEND_MAX_BYTES ((size_t)512 * 1024)
/* What is kept for a full socket, beyond which not even answers of the protocol (key updates) are
 * taken. */
#define UNSENT_MAX_BYTES ((size_t)64 * 1024)

struct tls {
    SSL *ssl;
    int fd;
    bool open;         /* greeted */
    bool is_link;      /* the opening side */
    bool broken;       /* nothing may be sent or received any more */
    bool drained;      /* the last recv has found less than there was room for */
    struct buf unsent; /* finished records that the socket has not taken */
    size_t unsent_pos;
};

static _Atomic uint32_t greeting;
static BIO_METHOD *socket_method; /* made with the first connection */
static pthread_once_t socket_method_once = PTHREAD_ONCE_INIT;

/* ---- below: the socket as OpenSSL sees it ---- */

/* Sends what the socket takes; -1 when it is broken. */
static ssize_t send_some(struct tls *tls, const char *bytes, size_t len)
{
    ssize_t sent;
    do {
        sent = sys_send(tls->fd, bytes, len);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
    struct tls *tls = BIO_get_data(bio);
    size_t taken = 0;
    BIO_clear_retry_flags(bio);
    assert(len > 0);
    if (tls->unsent.len >= UNSENT_MAX_BYTES) {
        BIO_set_retry_write(bio);
        return -1;
    }
    if (tls->unsent.len == 0) {
        ssize_t sent = send_some(tls, bytes, (size_t)len);
        if (sent < 0) {
            return -1;
        }
        taken = (size_t)sent;
    }
    buf_append(&tls->unsent, bytes + taken, (size_t)len - taken);
    return len;
}

static int bio_read(BIO *bio, char *bytes, int len)
{
    struct tls *tls = BIO_get_data(bio);
    ssize_t got;
    BIO_clear_retry_flags(bio);
    do {
        got = sys_recv(tls->fd, bytes, (size_t)len);
    } while (got < 0 && errno == EINTR);
    tls->drained = got < len;
    if (got < 0 && errno == EAGAIN) {
        BIO_set_retry_read(bio);
    }
    return (int)got;
}

static long bio_control(BIO *bio UNUSED, int command, long number UNUSED, void *pointer UNUSED)
{
    /* What is written has gone as far as it can go; the rest is not ours to answer. */
    return command == BIO_CTRL_FLUSH;
}

static void make_socket_method(void)
{
    socket_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "client");
    BIO_meth_set_write(socket_method, bio_write);
    BIO_meth_set_read(socket_method, bio_read);
    BIO_meth_set_ctrl(socket_method, bio_control);
}

static BIO *bio_create(struct tls *tls)
{
    pthread_once(&socket_method_once, make_socket_method);
    BIO *bio = BIO_new(socket_method);
    if (bio) {
        BIO_set_data(bio, tls);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* ---- life ---- */

/* NULL when there is no context or no memory. */
static struct tls *create(SSL_CTX *ctx)
{
    if (!ctx) {
        return NULL;
    }
    struct tls *tls = mem_calloc(1, sizeof(*tls));
    tls->fd = -1;
    tls->ssl = SSL_new(ctx);
    BIO *bio = tls->ssl ? bio_create(tls) : NULL;
    if (!bio) {
        SSL_free(tls->ssl);
        mem_free(tls);
        ERR_clear_error();
        return NULL;
    }
    SSL_set_bio(tls->ssl, bio, bio);
    return tls;
}

struct tls *tls_create(int fd)
{
    struct tls *tls = create(tls_context_server());
    if (tls) {
        tls->fd = fd;
        SSL_set_accept_state(tls->ssl);
        atomic_fetch_add_explicit(&greeting, 1, memory_order_relaxed);
    }
    return tls;
}

struct tls *tls_create_link(void)
{
    struct tls *tls = create(tls_context_client());
    if (tls) {
        tls->is_link = true;
        SSL_set_connect_state(tls->ssl);
    }
    return tls;
}

void tls_attach(struct tls *tls, int fd)
{
    tls->fd = fd;
}

/* It does not count among those that have not been greeted any more. */
static void uncount(const struct tls *tls)
{
    if (!tls->is_link) {
        atomic_fetch_sub_explicit(&greeting, 1, memory_order_relaxed);
    }
}

void tls_destroy(struct tls **tls)
{
    struct tls *t = *tls;
    *tls = NULL;
    if (!t) {
        return;
    }
    if (!t->open) {
        uncount(t);
    } else if (!t->broken) {
        SSL_shutdown(t->ssl);
    }
    SSL_free(t->ssl);
    ERR_clear_error();
    buf_deinit(&t->unsent);
    mem_free(t);
}

void tls_leave(struct tls *tls)
{
    tls->broken = true;
}

void tls_teardown(void)
{
    BIO_meth_free(socket_method); /* for good: the process ends */
    socket_method = NULL;
}

uint32_t tls_greeting_count(void)
{
    return atomic_load_explicit(&greeting, memory_order_relaxed);
}

/* ---- above ---- */

/* What a call that did not succeed has come to. Leaves the library's errors for the caller. */
static enum tls_status judge(struct tls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return TLS_DONE;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WAITS;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_ENDED; /* the peer has said goodbye: so may we */
    default:
        tls->broken = true;
        return TLS_ENDED;
    }
}

/* The reason of a failed handshake in words. */
static void explain(char *why)
{
    unsigned long code = ERR_peek_error();
    if (code) {
        ERR_error_string_n(code, why, TLS_WHY_MAX);
    } else {
        snprintf(why, TLS_WHY_MAX, "%s", "the connection ended");
    }
    ERR_clear_error();
}

const X509 *tls_certificate(const struct tls *tls)
{
    return SSL_get0_peer_certificate(tls->ssl);
}

bool tls_append_certificate(const struct tls *tls, struct buf *out)
{
    const X509 *certificate = tls_certificate(tls);
    BIO *text = certificate ? BIO_new(BIO_s_mem()) : NULL;
    char *bytes = NULL;
    bool done = text && PEM_write_bio_X509(text, (X509 *)certificate) == 1;
    if (done) {
        long len = BIO_get_mem_data(text, &bytes);
        buf_append(out, bytes, (size_t)len);
    }
    BIO_free(text);
    return done;
}

/* Also for a resumed session, whose certificate was looked at under an older list. */
static bool peer_is_allowed(const struct tls *tls)
{
    const struct tls_name_list *allowed = &tls_settings.allowed;
    const X509 *certificate = tls_certificate(tls);
    return allowed->count == 0 ||
           (certificate && tls_names_match(certificate, allowed->patterns, allowed->count));
}

enum tls_status tls_greet(struct tls *tls, char *why)
{
    assert(!tls->open && !tls->broken);
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    if (result != 1) {
        enum tls_status status = judge(tls, result);
        if (status == TLS_ENDED) {
            explain(why);
            tls->broken = true;
        }
        return status == TLS_ENDED ? TLS_ENDED : TLS_WAITS;
    }
    tls->open = true;
    uncount(tls);
    if (!tls->is_link && !peer_is_allowed(tls)) {
        snprintf(why, TLS_WHY_MAX, "%s", "no name of its certificate is in tls-allowlist");
        return TLS_ENDED;
    }
    return TLS_DONE;
}

size_t tls_receive(struct tls *tls, char *bytes, size_t room, enum tls_status *status)
{
    size_t total = 0, got;
    *status = TLS_ENDED;
    while (!tls->broken && total < room) {
        ERR_clear_error();
        if (SSL_read_ex(tls->ssl, bytes + total, room - total, &got) != 1) {
            *status = judge(tls, 0);
            return total;
        }
        total += got;
        if (tls->drained && !SSL_has_pending(tls->ssl)) {
            *status = TLS_DONE;
            return total;
        }
    }
    *status = tls->broken ? TLS_ENDED : TLS_MORE;
    return total;
}

enum tls_status tls_flush(struct tls *tls)
{
    while (tls->unsent.len > tls->unsent_pos && !tls->broken) {
        ssize_t sent =
            send_some(tls, tls->unsent.data + tls->unsent_pos, tls->unsent.len - tls->unsent_pos);
        if (sent == 0) {
            return TLS_WAITS;
        }
        if (sent < 0) {
            tls->broken = true;
        } else {
            tls->unsent_pos += (size_t)sent;
        }
    }
    buf_deinit(&tls->unsent);
    tls->unsent_pos = 0;
    return tls->broken ? TLS_ENDED : TLS_DONE;
}

/* The place in a list of vectors up to which bytes are sent. */
struct place {
    int index;
    size_t skip;
};

/* The next bytes to send: of one vector, or, where that is shorter than a record, joined in
 * `joined`. Moves `at` behind them. */
static struct slice next_chunk(const struct iovec *vectors, int count, struct place *at,
                               char *joined)
{
    const struct iovec *v = &vectors[at->index];
    size_t left = v->iov_len - at->skip;
    if (left >= RECORD_BYTES || at->index + 1 == count) {
        size_t len = left < RECORD_BYTES ? left : RECORD_BYTES;
        struct slice chunk = slice_of((const char *)v->iov_base + at->skip, len);
        at->skip += len;
        if (len == left) {
            *at = (struct place){at->index + 1, 0};
        }
        return chunk;
    }
    size_t len = 0;
    while (at->index < count && len < RECORD_BYTES) {
        v = &vectors[at->index];
        left = v->iov_len - at->skip;
        size_t part = left < RECORD_BYTES - len ? left : RECORD_BYTES - len;
        memcpy(joined + len, (const char *)v->iov_base + at->skip, part);
        len += part;
        at->skip += part;
        if (part == left) {
            *at = (struct place){at->index + 1, 0};
        }
    }
    return slice_of(joined, len);
}

ssize_t tls_send(struct tls *tls, const struct iovec *vectors, int count)
{
    char joined[RECORD_BYTES];
    struct place at = {0, 0};
    size_t total = 0, written;
    while (!tls->broken && at.index < count && total < SEND_MAX_BYTES) {
        if (!tls->open || tls_unsent(tls)) {
            break;
        }
        struct slice chunk = next_chunk(vectors, count, &at, joined);
        if (chunk.len == 0) {
            continue;
        }
        ERR_clear_error();
        if (SSL_write_ex(tls->ssl, chunk.ptr, chunk.len, &written) != 1) {
            /* The BIO takes a whole record where nothing was kept: only a broken connection is
             * left. */
            tls->broken = true;
            ERR_clear_error();
            break;
        }
        assert(written == chunk.len);
        total += written;
    }
    if (total == 0) {
        errno = tls->broken ? EPIPE : EAGAIN;
        return -1;
    }
    return (ssize_t)total;
}

bool tls_unsent(const struct tls *tls)
{
    return tls->unsent.len > 0;
}

bool tls_is_quiet(const struct tls *tls)
{
    return tls->open && !tls->broken && tls->unsent.len == 0 && !SSL_has_pending(tls->ssl);
}

size_t tls_memory_bytes(const struct tls *tls)
{
    return mem_usable_size(tls) + tls->unsent.capacity;
}
