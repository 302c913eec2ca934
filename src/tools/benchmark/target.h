/*
 * The server to measure: where it listens and what each connection says first.
 *
 * State: written while options are read, immutable afterwards.
 */
#ifndef TOOLS_BENCHMARK_TARGET_H
#define TOOLS_BENCHMARK_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/common/secure.h"

/* All strings are owned by the struct and may be NULL where it says so. */
struct bench_target {
    char *host;
    int port;
    char *socket_path; /* NULL: TCP */
    char *user;        /* NULL: the default user */
    char *password;    /* NULL: no authentication */
    int dbnum;
    bool resp3;
    bool tracking;
    struct secure_wish tls;
    struct secure_context *secure; /* NULL: no TLS; see bench_target_prepare */
};

/* The requests that a connection opens with, ready to send. */
struct bench_greeting {
    char *bytes;
    size_t len;
    int replies; /* how many replies they bring; 0: nothing is sent */
};

/* The default: 127.0.0.1:6379, no password. Returns 0, or -1 without memory. */
int bench_target_init(struct bench_target *target);

/* Frees the strings. */
void bench_target_deinit(struct bench_target *target);

/* Replaces the string at `field` by a copy of `text`. Returns 0, or -1 without memory. */
int bench_target_set(char **field, const char *text);

/*
 * Takes host, port, user, password and database from a URI of the form
 * `redis://[[user][:password]@]host[:port][/dbnum]`, with %XX in user and password; rediss:// asks
 * for TLS. What the URI leaves out stays as it is. Returns NULL, or what is wrong with the URI;
 * then *target may be half set.
 */
const char *bench_target_parse_uri(struct bench_target *target, const char *uri);

/*
 * Makes `target` ready for connections: with TLS reads certificates and keys. Returns NULL, or what
 * is wrong, which lives as long as the program.
 */
const char *bench_target_prepare(struct bench_target *target);

/*
 * Builds AUTH or HELLO, SELECT and CLIENT TRACKING as `target` asks for them. Returns 0, or -1
 * without memory. The caller frees greeting->bytes.
 */
int bench_target_greeting(const struct bench_target *target, struct bench_greeting *greeting);

/*
 * Starts a connection that does not block, with TCP_NODELAY. Returns a descriptor that becomes
 * writable when the connection stands or has failed (see SO_ERROR), or -1 with the reason in
 * `error`.
 */
int bench_target_connect(const struct bench_target *target, char *error, size_t error_size);

/*
 * Asks the server for its configuration parameter `name` over a connection of its own. Returns a
 * string owned by the caller, or NULL when the server cannot be asked or does not know it.
 */
char *bench_target_config(const struct bench_target *target, const char *name);

/* Writes "host:port" or the socket's path to `text`, as error messages name the server. */
void bench_target_name(const struct bench_target *target, char *text, size_t text_size);

#endif
