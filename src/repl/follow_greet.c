/* See follow_link.h: the handshake up to where it is decided what is sent. */
#include "base/mem.h"
#include "base/num.h"
#include "engine/gil.h"
#include "net/listener.h"
#include "net/tls_settings.h"
#include "repl/follow_priv.h"

#include <string.h>

/* How KeyDB answers REPLCONF capa on an active replica, behind OK. */
#define KEYDB_ACTIVE "active-replica"

bool follow_ask(struct follow_link *l, char line[FOLLOW_LINE_BYTES], int argc,
                const struct slice *argv)
{
    return follow_send(l, argc, argv) && follow_line(l, line);
}

/* The other server is there, though it may want a password first; one whose disk fails needs us the
 * more. */
static bool say_ping(struct follow_link *l)
{
    char line[FOLLOW_LINE_BYTES];
    if (!FOLLOW_ASK(l, line, SLICE("PING"))) {
        return false;
    }
    if (line[0] == '+' || strncmp(line, "-NOAUTH", 7) == 0 || strncmp(line, "-NOPERM", 7) == 0 ||
        strncmp(line, "-MISCONF", 8) == 0 || strncmp(line, "-MASTERDOWN", 11) == 0) {
        return true;
    }
    return follow_refused(l, "it answers to PING", line);
}

/* Copies of what the configuration says now: CONFIG SET may change it while we wait. */
struct greeting {
    struct buf user, password, ip;
    int64_t port;
};

static void copy_text(struct buf *to, const char *text)
{
    buf_append_cstr(to, text ? text : "");
}

/* Where our clients are to go: by TLS, if links are. */
static int64_t own_port(void)
{
    return tls_settings.replication && tls_settings.port ? tls_settings.port : listener_port();
}

static void look_up(struct greeting *g)
{
    gil_wake();
    copy_text(&g->user, follow_settings.user);
    copy_text(&g->password, follow_settings.password);
    copy_text(&g->ip, follow_settings.announce_ip);
    g->port = follow_settings.announce_port ? follow_settings.announce_port : own_port();
    gil_sleep();
}

static bool authenticate(struct follow_link *l, const struct greeting *g)
{
    char line[FOLLOW_LINE_BYTES];
    bool ok;
    if (g->password.len == 0) {
        return true;
    }
    if (g->user.len > 0) {
        ok = FOLLOW_ASK(l, line, SLICE("AUTH"), buf_slice(&g->user), buf_slice(&g->password));
    } else {
        ok = FOLLOW_ASK(l, line, SLICE("AUTH"), buf_slice(&g->password));
    }
    return ok && (line[0] != '-' || follow_refused(l, "it does not take masterauth", line));
}

/* What older servers do not know is no reason to give up. */
static bool introduce(struct follow_link *l, const struct greeting *g)
{
    char line[FOLLOW_LINE_BYTES], port[NUM_I64_MAX_CHARS];
    size_t digits = num_format_i64(port, g->port);
    if (!FOLLOW_ASK(l, line, SLICE("REPLCONF"), SLICE("listening-port"), slice_of(port, digits))) {
        return false;
    }
    if (g->ip.len > 0 &&
        !FOLLOW_ASK(l, line, SLICE("REPLCONF"), SLICE("ip-address"), buf_slice(&g->ip))) {
        return false;
    }
    if (!FOLLOW_ASK(l, line, SLICE("REPLCONF"), SLICE("capa"), SLICE("eof"), SLICE("capa"),
                    SLICE("psync2"), SLICE("capa"), SLICE(FOLLOW_KNOWS_ENVELOPES))) {
        return false;
    }
    /* Such a one does not tell what expires, and wants to hear that we see to it ourselves. */
    l->is_enveloped = strstr(line, " " KEYDB_ACTIVE) != NULL;
    return !l->is_enveloped ||
           FOLLOW_ASK(l, line, SLICE("REPLCONF"), SLICE("capa"), SLICE("activeExpire"));
}

bool follow_greet(struct follow_link *l)
{
    struct greeting g = {0};
    look_up(&g);
    bool fine = say_ping(l) && authenticate(l, &g) && introduce(l, &g);
    buf_deinit(&g.user);
    buf_deinit(&g.password);
    buf_deinit(&g.ip);
    return fine;
}
