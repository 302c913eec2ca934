/* The options of TLS as values. State: world. */
#ifndef NET_TLS_SETTINGS_H
#define NET_TLS_SETTINGS_H

#include "base/option.h"
#include "base/slice.h"

enum tls_auth_clients { TLS_AUTH_NO, TLS_AUTH_YES, TLS_AUTH_OPTIONAL };

/* Names of a list at most: as many as one line has words. */
#define TLS_NAMES_MAX OPTION_MAX_WORDS

struct tls_name_list {
    char *patterns[TLS_NAMES_MAX]; /* glob patterns */
    int count;
};

/* Paths and texts are NULL where nothing is configured. */
struct tls_settings {
    int64_t port;     /* 0: no clients by TLS */
    bool replication; /* links to other servers are by TLS */
    char *cert_file, *key_file, *key_file_pass;
    char *client_cert_file, *client_key_file, *client_key_file_pass; /* of links that we open */
    char *ca_cert_file, *ca_cert_dir, *dh_params_file;
    char *protocols, *ciphers, *ciphersuites;
    int auth_clients; /* enum tls_auth_clients */
    bool prefer_server_ciphers, session_caching;
    int64_t session_cache_size, session_cache_timeout_s;
    struct tls_name_list allowed;   /* empty: any name */
    struct tls_name_list unaudited; /* empty: nobody is audited (audit.h) */
    bool rotation; /* files that change are read anew by themselves (tls_rotation.h) */
};

extern struct tls_settings tls_settings;
extern const struct option tls_options[];

/* Whether anything is by TLS. */
static inline bool tls_is_wanted(void)
{
    return tls_settings.port > 0 || tls_settings.replication;
}

/* Frees the strings. */
void tls_settings_teardown(void);

#endif
