/* TLS for the tools: see secure.h. */
#include "tools/common/secure.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct secure_context {
    SSL_CTX *ctx;
    char *sni; /* NULL: none */
};

struct secure {
    SSL *ssl;
    bool open;
    bool broken;
};

/* ---- the command line ---- */

bool secure_wish_take(struct secure_wish *wish, const char *option, const char *value)
{
    const struct {
        const char *name;
        const char **text; /* NULL: a flag */
        bool *flag;
    } rows[] = {
        {"--tls", NULL, &wish->wanted},
        {"--insecure", NULL, &wish->insecure},
        {"--sni", &wish->sni, NULL},
        {"--cacert", &wish->ca_file, NULL},
        {"--cacertdir", &wish->ca_dir, NULL},
        {"--cert", &wish->cert_file, NULL},
        {"--key", &wish->key_file, NULL},
        {"--tls-ciphers", &wish->ciphers, NULL},
        {"--tls-ciphersuites", &wish->ciphersuites, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, option) == 0) {
            if (rows[i].flag) {
                *rows[i].flag = true;
            } else {
                *rows[i].text = value;
            }
            return true;
        }
    }
    return false;
}

/* ---- contexts ---- */

/* What of the wish cannot be; NULL when all is well. */
static const char *fulfil(SSL_CTX *ctx, const struct secure_wish *wish)
{
    bool trusts = wish->ca_file || wish->ca_dir;
    if ((wish->cert_file == NULL) != (wish->key_file == NULL)) {
        return "--cert and --key belong together";
    }
    if (trusts && SSL_CTX_load_verify_locations(ctx, wish->ca_file, wish->ca_dir) != 1) {
        return "Invalid CA Certificate File/Directory";
    }
    if (!trusts && SSL_CTX_set_default_verify_paths(ctx) != 1) {
        return "Failed to use default CA paths";
    }
    if (wish->cert_file && SSL_CTX_use_certificate_chain_file(ctx, wish->cert_file) != 1) {
        return "Invalid client certificate";
    }
    if (wish->key_file &&
        (SSL_CTX_use_PrivateKey_file(ctx, wish->key_file, SSL_FILETYPE_PEM) != 1 ||
         SSL_CTX_check_private_key(ctx) != 1)) {
        return "Invalid private key";
    }
    if (wish->ciphers && SSL_CTX_set_cipher_list(ctx, wish->ciphers) != 1) {
        return "Error while configuring ciphers";
    }
    if (wish->ciphersuites && SSL_CTX_set_ciphersuites(ctx, wish->ciphersuites) != 1) {
        return "Error while setting cypher suites";
    }
    return NULL;
}

/* Has the library work out now what it would note in a certificate at the first handshake: the
 * threads of a benchmark share the context, and it tells them so by atomics that ThreadSanitizer
 * does not see. */
static void digest_trusted(SSL_CTX *ctx)
{
    STACK_OF(X509_OBJECT) *trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
    for (int i = 0; i < sk_X509_OBJECT_num(trusted); i++) {
        X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));
        if (certificate) {
            X509_check_purpose(certificate, -1, 0);
        }
    }
    if (SSL_CTX_get0_certificate(ctx)) {
        X509_check_purpose(SSL_CTX_get0_certificate(ctx), -1, 0);
    }
    ERR_clear_error();
}

struct secure_context *secure_context_create(const struct secure_wish *wish, char *error)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    const char *wrong = "out of memory";
    if (ctx) {
        SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
        SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_verify(ctx, wish->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
        wrong = fulfil(ctx, wish);
    }
    struct secure_context *made = wrong ? NULL : calloc(1, sizeof(*made));
    if (!made) {
        snprintf(error, SECURE_ERROR_BYTES, "%s", wrong ? wrong : "out of memory");
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return NULL;
    }
    digest_trusted(ctx);
    made->ctx = ctx;
    made->sni = wish->sni ? strdup(wish->sni) : NULL;
    return made;
}

void secure_context_destroy(struct secure_context **context)
{
    struct secure_context *c = *context;
    *context = NULL;
    if (c) {
        SSL_CTX_free(c->ctx);
        free(c->sni);
        free(c);
    }
}

/* ---- connections ---- */

struct secure *secure_create(struct secure_context *context, int fd)
{
    struct secure *s = calloc(1, sizeof(*s));
    SSL *ssl = s ? SSL_new(context->ctx) : NULL;
    int flags = fcntl(fd, F_GETFL);
    if (!ssl || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        SSL_set_fd(ssl, fd) != 1 ||
        (context->sni && SSL_set_tlsext_host_name(ssl, context->sni) != 1)) {
        SSL_free(ssl);
        free(s);
        ERR_clear_error();
        return NULL;
    }
    SSL_set_connect_state(ssl);
    s->ssl = ssl;
    return s;
}

void secure_destroy(struct secure **s)
{
    struct secure *gone = *s;
    *s = NULL;
    if (gone) {
        if (gone->open && !gone->broken) {
            SSL_shutdown(gone->ssl);
        }
        SSL_free(gone->ssl);
        ERR_clear_error();
        free(gone);
    }
}

enum secure_greeting secure_greet(struct secure *s, char *error)
{
    assert(!s->open);
    ERR_clear_error();
    int result = SSL_do_handshake(s->ssl);
    if (result == 1) {
        s->open = true;
        return SECURE_DONE;
    }
    switch (SSL_get_error(s->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return SECURE_READS;
    case SSL_ERROR_WANT_WRITE:
        return SECURE_WRITES;
    default:
        break;
    }
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    snprintf(error, SECURE_ERROR_BYTES, "SSL_connect failed: %s",
             reason ? reason : "the server closed the connection");
    ERR_clear_error();
    s->broken = true;
    return SECURE_FAILED;
}

/* errno and result of a call that moved nothing. */
static ssize_t judge(struct secure *s, int result)
{
    int saved_errno = errno;
    switch (SSL_get_error(s->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        s->broken = true;
        errno = saved_errno ? saved_errno : ECONNRESET;
        return -1;
    default:
        s->broken = true;
        ERR_clear_error();
        errno = EPROTO;
        return -1;
    }
}

ssize_t secure_recv(struct secure *s, void *bytes, size_t room)
{
    size_t total = 0, got;
    do {
        ERR_clear_error();
        errno = 0;
        if (SSL_read_ex(s->ssl, (char *)bytes + total, room - total, &got) != 1) {
            return total > 0 ? (ssize_t)total : judge(s, 0);
        }
        total += got;
    } while (total < room);
    return (ssize_t)total;
}

ssize_t secure_send(struct secure *s, const void *bytes, size_t len)
{
    size_t sent;
    ERR_clear_error();
    errno = 0;
    return SSL_write_ex(s->ssl, bytes, len, &sent) == 1 ? (ssize_t)sent : judge(s, 0);
}

bool secure_pending(const struct secure *s)
{
    return SSL_pending(s->ssl) > 0;
}
