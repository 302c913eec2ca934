/* The server to measure, as in target.h. */
#include "tools/benchmark/target.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tools/common/link.h"

#define DEFAULT_PORT 6379
#define PORT_MAX 65535
#define DBNUM_MAX 1000000
/* Nobody waits longer for two lines of the report. */
#define CONFIG_TIMEOUT_S 3

int bench_target_init(struct bench_target *target)
{
    *target = (struct bench_target){.port = DEFAULT_PORT};
    return bench_target_set(&target->host, "127.0.0.1");
}

void bench_target_deinit(struct bench_target *target)
{
    free(target->host);
    free(target->socket_path);
    free(target->user);
    free(target->password);
    secure_context_destroy(&target->secure);
    *target = (struct bench_target){0};
}

int bench_target_set(char **field, const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        return -1;
    }
    free(*field);
    *field = copy;
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes %XX in `len` bytes to a new string; NULL on a bad escape, a NUL, or without memory. */
static char *percent_decode(const char *text, size_t len)
{
    char *out = malloc(len + 1);
    size_t used = 0;
    for (size_t i = 0; out != NULL && i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < len ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0) {
                free(out);
                return NULL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        out[used++] = c;
    }
    if (out != NULL) {
        out[used] = '\0';
    }
    return out;
}

static bool number_parse(const char *text, long max, int *number)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > max) {
        return false;
    }
    *number = (int)value;
    return true;
}

static int field_decode(char **field, const char *text, size_t len)
{
    char *decoded = percent_decode(text, len);
    if (decoded == NULL) {
        return -1;
    }
    free(*field);
    *field = decoded;
    return 0;
}

/* `[user][:password]`, up to `len` bytes. */
static const char *userinfo_parse(struct bench_target *target, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon != NULL ? (size_t)(colon - text) : len;
    if (user_len > 0 && field_decode(&target->user, text, user_len) != 0) {
        return "bad user name in URI";
    }
    if (colon != NULL && field_decode(&target->password, colon + 1, len - user_len - 1) != 0) {
        return "bad password in URI";
    }
    return NULL;
}

/* `host[:port]`, `[v6][:port]`, up to `len` bytes. */
static const char *authority_parse(struct bench_target *target, const char *text, size_t len)
{
    size_t host_len;
    const char *rest;
    if (len > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', len);
        if (close == NULL) {
            return "'[' without ']' in URI";
        }
        text++;
        host_len = (size_t)(close - text);
        rest = close + 1;
        len -= host_len + 2;
    } else {
        const char *colon = memchr(text, ':', len);
        host_len = colon != NULL ? (size_t)(colon - text) : len;
        rest = text + host_len;
        len -= host_len;
    }
    if (host_len > 0 && field_decode(&target->host, text, host_len) != 0) {
        return "bad host in URI";
    }
    if (len == 0) {
        return NULL;
    }
    char port[8];
    if (*rest != ':' || len - 1 >= sizeof(port)) {
        return "bad port in URI";
    }
    memcpy(port, rest + 1, len - 1);
    port[len - 1] = '\0';
    return number_parse(port, PORT_MAX, &target->port) ? NULL : "bad port in URI";
}

const char *bench_target_parse_uri(struct bench_target *target, const char *uri)
{
    assert(target != NULL && uri != NULL);
    static const char scheme[] = "redis://", secure[] = "rediss://";
    bool is_secure = strncasecmp(uri, secure, sizeof(secure) - 1) == 0;
    if (!is_secure && strncasecmp(uri, scheme, sizeof(scheme) - 1) != 0) {
        return "a URI begins with redis:// or rediss://";
    }
    target->tls.wanted |= is_secure;
    const char *at = uri + (is_secure ? sizeof(secure) : sizeof(scheme)) - 1;
    size_t len = strcspn(at, "/");
    const char *sign = memrchr(at, '@', len);
    if (sign != NULL) {
        const char *wrong = userinfo_parse(target, at, (size_t)(sign - at));
        if (wrong != NULL) {
            return wrong;
        }
        len -= (size_t)(sign + 1 - at);
        at = sign + 1;
    }
    const char *wrong = authority_parse(target, at, len);
    if (wrong != NULL) {
        return wrong;
    }
    if (at[len] == '/' && at[len + 1] != '\0' &&
        !number_parse(at + len + 1, DBNUM_MAX, &target->dbnum)) {
        return "bad database number in URI";
    }
    return NULL;
}

const char *bench_target_prepare(struct bench_target *target)
{
    static char error[SECURE_ERROR_BYTES];
    if (target->tls.wanted && target->secure == NULL) {
        target->secure = secure_context_create(&target->tls, error);
        return target->secure == NULL ? error : NULL;
    }
    return NULL;
}

/* Appends one command to the greeting. */
static int greeting_add(struct bench_greeting *greeting, int argc, const char **argv)
{
    char *command = NULL;
    int len = (int)redisFormatCommandArgv(&command, argc, argv, NULL);
    if (len <= 0) {
        return -1;
    }
    char *grown = realloc(greeting->bytes, greeting->len + (size_t)len);
    if (grown != NULL) {
        memcpy(grown + greeting->len, command, (size_t)len);
        greeting->bytes = grown;
        greeting->len += (size_t)len;
        greeting->replies++;
    }
    redisFreeCommand(command);
    return grown != NULL ? 0 : -1;
}

static int greeting_build(const struct bench_target *target, struct bench_greeting *greeting)
{
    const char *argv[5];
    int argc = 0;
    if (target->resp3) {
        argv[argc++] = "HELLO";
        argv[argc++] = "3";
    }
    if (target->password != NULL) {
        argv[argc++] = "AUTH";
        if (target->user != NULL || target->resp3) {
            argv[argc++] = target->user != NULL ? target->user : "default";
        }
        argv[argc++] = target->password;
    }
    if (argc > 0 && greeting_add(greeting, argc, argv) != 0) {
        return -1;
    }
    if (target->dbnum != 0) {
        char dbnum[16];
        snprintf(dbnum, sizeof(dbnum), "%d", target->dbnum);
        const char *select[] = {"SELECT", dbnum};
        if (greeting_add(greeting, 2, select) != 0) {
            return -1;
        }
    }
    if (target->tracking) {
        const char *tracking[] = {"CLIENT", "TRACKING", "ON"};
        return greeting_add(greeting, 3, tracking);
    }
    return 0;
}

int bench_target_greeting(const struct bench_target *target, struct bench_greeting *greeting)
{
    assert(target != NULL && greeting != NULL);
    *greeting = (struct bench_greeting){0};
    if (greeting_build(target, greeting) != 0) {
        free(greeting->bytes);
        *greeting = (struct bench_greeting){0};
        return -1;
    }
    return 0;
}

int bench_target_connect(const struct bench_target *target, char *error, size_t error_size)
{
    assert(target != NULL && error != NULL && error_size > 0);
    redisContext *context = target->socket_path != NULL
                                ? redisConnectUnixNonBlock(target->socket_path)
                                : redisConnectNonBlock(target->host, target->port);
    if (context == NULL || context->err != 0) {
        snprintf(error, error_size, "%s", context == NULL ? "out of memory" : context->errstr);
        if (context != NULL) {
            redisFree(context);
        }
        return -1;
    }
    /* Only the descriptor is wanted: what hiredis keeps beside it is in the way of a fast loop. */
    int fd = fcntl(context->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        snprintf(error, error_size, "%s", strerror(errno));
    }
    redisFree(context);
    if (fd >= 0 && target->socket_path == NULL) {
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    return fd;
}

/* Sends a command and waits for its reply; NULL when none came in time. */
static struct reply *ask(struct link *link, const char *const *argv, size_t count)
{
    struct word words[4];
    struct reply *reply = NULL;
    assert(count <= sizeof(words) / sizeof(words[0]));
    for (size_t i = 0; i < count; i++) {
        words[i] = (struct word){(char *)argv[i], strlen(argv[i])};
    }
    if (link_send(link, words, count) != LINK_OK ||
        link_read(link, CONFIG_TIMEOUT_S * 1000, &reply) != LINK_OK) {
        return NULL;
    }
    return reply;
}

static bool config_login(struct link *link, const struct bench_target *target)
{
    const char *with_user[] = {"AUTH", target->user, target->password};
    const char *without[] = {"AUTH", target->password};
    if (target->password == NULL) {
        return true;
    }
    struct reply *reply = target->user != NULL ? ask(link, with_user, 3) : ask(link, without, 2);
    bool passes = reply != NULL && reply->type != REPLY_ERROR;
    reply_destroy(&reply);
    return passes;
}

char *bench_target_config(const struct bench_target *target, const char *name)
{
    char error[LINK_ERROR_BYTES];
    const char *const get[] = {"CONFIG", "GET", name};
    int timeout_ms = CONFIG_TIMEOUT_S * 1000;
    struct link *link = target->socket_path != NULL
                            ? link_connect_unix(target->socket_path, timeout_ms, error)
                            : link_connect_tcp(target->host, target->port, timeout_ms, 0, error);
    char *value = NULL;
    if (link != NULL && (target->secure == NULL || link_secure(link, target->secure, error)) &&
        config_login(link, target)) {
        struct reply *reply = ask(link, get, 3);
        if (reply != NULL && reply->type == REPLY_ARRAY && reply->count == 2 &&
            reply->items[1].type == REPLY_STRING) {
            value = strdup(reply->items[1].text);
        } else if (reply != NULL && reply->type == REPLY_ARRAY && reply->count == 0) {
            value = strdup("(no such option)"); /* an answer as well */
        }
        reply_destroy(&reply);
    }
    link_destroy(&link);
    return value;
}

void bench_target_name(const struct bench_target *target, char *text, size_t text_size)
{
    if (target->socket_path != NULL) {
        snprintf(text, text_size, "%s", target->socket_path);
    } else {
        snprintf(text, text_size, "%s:%d", target->host, target->port);
    }
}
