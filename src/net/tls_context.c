/* See tls_context.h. */
#include "net/tls_context.h"

#include "base/hash.h"
#include "base/log.h"
#include "net/tls_settings.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>

/* Sessions are resumed only with the kind of server that issued them (RFC 5246, F.1.4). */
static const unsigned char session_context[] = "keydb";

struct contexts {
    SSL_CTX *server, *client;
    uint64_t files; /* tls_context_look_at_files() before they were read */
};

static struct {
    struct contexts current, candidate;
    bool stale; /* settings have changed while there was no port: current does not fit them */
} state;

/* Says in the log what failed and why; returns false. */
static bool fail(const char *what, const char *which)
{
    char why[256] = "";
    unsigned long code = ERR_peek_last_error();
    if (code) {
        ERR_error_string_n(code, why, sizeof(why));
    }
    ERR_clear_error();
    log_warning("TLS: %s%s%s%s%s", what, which ? " " : "", which ? which : "", code ? ": " : "",
                why);
    return false;
}

/* ---- the parts of a context ---- */

/* OpenSSL asks for the password of a key; without this it would ask at the terminal. */
static int give_password(char *buffer, int size, int writing, void *password)
{
    size_t len = password ? strlen(password) : 0;
    if (writing || size < 0 || len > (size_t)size) {
        return -1;
    }
    memcpy(buffer, password ? password : "", len);
    return (int)len;
}

static bool use_certificate(SSL_CTX *ctx, const char *cert_file, const char *key_file, char *pass)
{
    SSL_CTX_set_default_passwd_cb(ctx, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, pass);
    bool used = true;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1) {
        used = fail("Can't load the certificate", cert_file);
    } else if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1) {
        used = fail("Can't load the private key", key_file);
    } else if (SSL_CTX_check_private_key(ctx) != 1) {
        used = fail("The private key does not belong to the certificate", cert_file);
    }
    /* The settings may go before the context does. */
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    return used;
}

static bool use_authorities(SSL_CTX *ctx)
{
    const char *file = tls_settings.ca_cert_file, *directory = tls_settings.ca_cert_dir;
    struct stat info;
    if (file && SSL_CTX_load_verify_file(ctx, file) != 1) {
        return fail("Can't load the certificates of tls-ca-cert-file", file);
    }
    if (directory && (stat(directory, &info) != 0 || !S_ISDIR(info.st_mode))) {
        return fail("tls-ca-cert-dir is no directory:", directory);
    }
    if (directory && SSL_CTX_load_verify_dir(ctx, directory) != 1) {
        return fail("Can't use tls-ca-cert-dir", directory);
    }
    return true;
}

/* The options that switch off the versions that tls-protocols does not name. */
static bool use_protocols(SSL_CTX *ctx)
{
    static const struct {
        const char *name;
        uint64_t off;
    } versions[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                    {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                    {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                    {"TLSv1.3", SSL_OP_NO_TLSv1_3}};
    uint64_t off = SSL_OP_NO_SSLv3;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        off |= versions[i].off;
    }
    uint64_t all_off = off;
    const char *text = tls_settings.protocols ? tls_settings.protocols : "TLSv1.2 TLSv1.3";
    while (*(text += strspn(text, " \t"))) {
        size_t len = strcspn(text, " \t"), i = 0;
        struct slice word = slice_of(text, len);
        while (i < 4 && !slice_equal_nocase(word, versions[i].name)) {
            i++;
        }
        if (i == 4) {
            return fail("tls-protocols names TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3, not", text);
        }
        off &= ~versions[i].off;
        text += len;
    }
    if (off == all_off) {
        return fail("tls-protocols names no version", NULL);
    }
    SSL_CTX_set_min_proto_version(ctx, 0);
    SSL_CTX_set_options(ctx, off);
    return true;
}

static bool use_ciphers(SSL_CTX *ctx)
{
    const char *ciphers = tls_settings.ciphers, *suites = tls_settings.ciphersuites;
    if (ciphers && SSL_CTX_set_cipher_list(ctx, ciphers) != 1) {
        return fail("tls-ciphers names no known cipher:", ciphers);
    }
    if (suites && SSL_CTX_set_ciphersuites(ctx, suites) != 1) {
        return fail("Bad tls-ciphersuites:", suites);
    }
    return true;
}

static bool use_dh_params(SSL_CTX *ctx)
{
    const char *file = tls_settings.dh_params_file;
    if (!file) {
        SSL_CTX_set_dh_auto(ctx, 1);
        return true;
    }
    BIO *in = BIO_new_file(file, "r");
    EVP_PKEY *params = in ? PEM_read_bio_Parameters(in, NULL) : NULL;
    BIO_free(in);
    if (!params || SSL_CTX_set0_tmp_dh_pkey(ctx, params) != 1) {
        EVP_PKEY_free(params);
        return fail("Can't load tls-dh-params-file", file);
    }
    return true;
}

static void use_sessions(SSL_CTX *ctx)
{
    SSL_CTX_set_session_id_context(ctx, session_context, sizeof(session_context) - 1);
    if (!tls_settings.session_caching) {
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(ctx, 0);
        return;
    }
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(ctx, tls_settings.session_cache_size);
    SSL_CTX_set_timeout(ctx, tls_settings.session_cache_timeout_s);
    SSL_CTX_set_num_tickets(ctx, 1); /* each connection has one to give to its successor */
}

/* Has the library work out now what it otherwise notes in a shared certificate when the first
 * handshake needs it: contexts are not changed once they are in force. (Those of tls-ca-cert-dir
 * are read when they are needed, behind the library's lock.) */
static void digest_certificates(SSL_CTX *ctx)
{
    STACK_OF(X509_OBJECT) *trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
    STACK_OF(X509) *chain = NULL;
    for (int i = 0; i < sk_X509_OBJECT_num(trusted); i++) {
        X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));
        if (certificate) {
            X509_check_purpose(certificate, -1, 0);
        }
    }
    X509_check_purpose(SSL_CTX_get0_certificate(ctx), -1, 0);
    SSL_CTX_get0_chain_certs(ctx, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509_check_purpose(sk_X509_value(chain, i), -1, 0);
    }
    ERR_clear_error();
}

/* ---- whole contexts ---- */

/* What both sides have in common. */
static SSL_CTX *create(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (!ctx) {
        fail("Can't make a context", NULL);
        return NULL;
    }
    uint64_t options = SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                       SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_SINGLE_DH_USE;
    options |= tls_settings.prefer_server_ciphers ? SSL_OP_CIPHER_SERVER_PREFERENCE : 0;
    SSL_CTX_set_options(ctx, options);
    /* Idle connections hold no record buffers. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(ctx, 1); /* header and body of a record in one system call */
    if (!use_protocols(ctx) || !use_ciphers(ctx) || !use_authorities(ctx)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    return ctx;
}

static SSL_CTX *create_server(void)
{
    static const int modes[] = {[TLS_AUTH_NO] = SSL_VERIFY_NONE,
                                [TLS_AUTH_YES] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                                [TLS_AUTH_OPTIONAL] = SSL_VERIFY_PEER};
    SSL_CTX *ctx = create(TLS_server_method());
    if (ctx && (!use_certificate(ctx, tls_settings.cert_file, tls_settings.key_file,
                                 tls_settings.key_file_pass) ||
                !use_dh_params(ctx))) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    if (ctx) {
        SSL_CTX_set_verify(ctx, modes[tls_settings.auth_clients], NULL);
        use_sessions(ctx);
        digest_certificates(ctx);
    }
    return ctx;
}

static SSL_CTX *create_client(void)
{
    const struct tls_settings *s = &tls_settings;
    bool own = s->client_cert_file != NULL;
    SSL_CTX *ctx = create(TLS_client_method());
    if (ctx && !use_certificate(ctx, own ? s->client_cert_file : s->cert_file,
                                own ? s->client_key_file : s->key_file,
                                own ? s->client_key_file_pass : s->key_file_pass)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    if (ctx) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    }
    return ctx;
}

/* What must be set is. */
static bool settings_are_whole(void)
{
    const struct tls_settings *s = &tls_settings;
    if (!s->cert_file) {
        return fail("No tls-cert-file configured!", NULL);
    }
    if (!s->key_file) {
        return fail("No tls-key-file configured!", NULL);
    }
    if (s->auth_clients != TLS_AUTH_NO && !s->ca_cert_file && !s->ca_cert_dir) {
        return fail("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir", NULL);
    }
    if (!s->client_cert_file != !s->client_key_file) {
        return fail("tls-client-cert-file and tls-client-key-file belong together", NULL);
    }
    return true;
}

static uint64_t look_at_file(const char *path, uint64_t before)
{
    struct stat info;
    uint64_t seen[] = {before, 0, 0, 0, 0, 0, 0, 0};
    if (path && stat(path, &info) == 0) {
        seen[1] = info.st_dev;
        seen[2] = info.st_ino;
        seen[3] = (uint64_t)info.st_size;
        seen[4] = (uint64_t)info.st_mtim.tv_sec;
        seen[5] = (uint64_t)info.st_mtim.tv_nsec;
        seen[6] = (uint64_t)info.st_ctim.tv_sec;
        seen[7] = (uint64_t)info.st_ctim.tv_nsec;
    }
    return hash_bytes((const char *)seen, sizeof(seen));
}

static void destroy(struct contexts *c)
{
    SSL_CTX_free(c->server);
    SSL_CTX_free(c->client);
    *c = (struct contexts){NULL, NULL, 0};
}

/* ---- public verbs ---- */

bool tls_context_renew(void)
{
    if (!tls_is_wanted()) {
        state.stale = true;
        return true;
    }
    destroy(&state.candidate);
    if (!settings_are_whole()) {
        return false;
    }
    struct contexts made = {.files = tls_context_look_at_files()};
    made.server = create_server();
    made.client = made.server ? create_client() : NULL;
    if (!made.client) {
        destroy(&made);
        return false;
    }
    state.candidate = made;
    return true;
}

bool tls_context_prepare(void)
{
    bool fits = state.candidate.server || (state.current.server && !state.stale);
    return fits || tls_context_renew();
}

void tls_context_settle(bool accepted)
{
    if (accepted && state.candidate.server) {
        destroy(&state.current);
        state.current = state.candidate;
        state.candidate = (struct contexts){NULL, NULL, 0};
        state.stale = false;
    }
    destroy(&state.candidate);
}

void tls_context_teardown(void)
{
    destroy(&state.candidate);
    destroy(&state.current);
}

uint64_t tls_context_look_at_files(void)
{
    const struct tls_settings *s = &tls_settings;
    const char *const paths[] = {s->cert_file,       s->key_file,     s->client_cert_file,
                                 s->client_key_file, s->ca_cert_file, s->ca_cert_dir,
                                 s->dh_params_file};
    uint64_t seen = 0;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        seen = look_at_file(paths[i], seen);
    }
    return seen;
}

uint64_t tls_context_files(void)
{
    return state.current.files;
}

SSL_CTX *tls_context_server(void)
{
    return state.current.server;
}

SSL_CTX *tls_context_client(void)
{
    return state.current.client;
}
