/* CLIENT LIST and CLIENT INFO: clients as lines of text. */
#include "net/client_commands_priv.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "net/blocked.h"
#include "net/feed.h"
#include "net/held.h"
#include "engine/transaction.h"
#include "net/input.h"
#include "net/subscriptions.h"
#include "net/tracking.h"
#include "net/upstream.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- kinds ---- */

bool client_kind_parse(struct call *c, int i, enum client_kind *kind)
{
    static const struct {
        const char *word;
        enum client_kind kind;
    } words[] = {
        {"normal", CLIENT_KIND_NORMAL},   {"slave", CLIENT_KIND_REPLICA},
        {"replica", CLIENT_KIND_REPLICA}, {"pubsub", CLIENT_KIND_PUBSUB},
        {"master", CLIENT_KIND_PRIMARY},  {"primary", CLIENT_KIND_PRIMARY},
    };
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        if (call_arg_is(c, i, words[w].word)) {
            *kind = words[w].kind;
            return true;
        }
    }
    struct slice word = c->argv[i];
    reply_errorf(c->reply, "ERR Unknown client type '%.*s'", (int)(word.len < 128 ? word.len : 128),
                 word.ptr);
    return false;
}

enum client_kind client_kind_of(const struct client *c)
{
    if (c->flags & CLIENT_FED) {
        return CLIENT_KIND_REPLICA;
    }
    return c->session.subscriptions > 0 ? CLIENT_KIND_PUBSUB : CLIENT_KIND_NORMAL;
}

/* ---- one client ---- */

/* Longest text of an address: a Unix socket's path and ":0", or "[ip]:port". */
#define CLIENT_ADDR_MAX 128

static void format_inet(char out[CLIENT_ADDR_MAX], int family, const void *address, in_port_t port)
{
    char ip[INET6_ADDRSTRLEN];
    if (!inet_ntop(family, address, ip, sizeof(ip))) {
        ip[0] = '?';
        ip[1] = '\0';
    }
    snprintf(out, CLIENT_ADDR_MAX, strchr(ip, ':') ? "[%s]:%u" : "%s:%u", ip,
             (unsigned)ntohs(port));
}

static void format_local(const struct client *c, char out[CLIENT_ADDR_MAX])
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
        struct sockaddr_storage storage;
    } address = {0};
    socklen_t len = sizeof(address);
    snprintf(out, CLIENT_ADDR_MAX, "?:0");
    if (getsockname(c->fd, &address.any, &len) != 0) {
        return;
    }
    switch (address.any.sa_family) {
    case AF_INET:
        format_inet(out, AF_INET, &address.in.sin_addr, address.in.sin_port);
        break;
    case AF_INET6:
        format_inet(out, AF_INET6, &address.in6.sin6_addr, address.in6.sin6_port);
        break;
    case AF_UNIX:
        snprintf(out, CLIENT_ADDR_MAX, "%.*s:0", (int)sizeof(address.un.sun_path),
                 address.un.sun_path);
        break;
    default:
        break;
    }
}

const char *client_local_addr(struct client *c)
{
    if (!c->local_addr) {
        char text[CLIENT_ADDR_MAX];
        format_local(c, text);
        c->local_addr = mem_dup(text, strlen(text));
    }
    return c->local_addr;
}

static void append_flags(struct buf *out, const struct client *c)
{
    static const struct {
        uint32_t flag;
        char letter;
    } letters[] = {
        {CLIENT_FED, 'S'},
        {CLIENT_MONITOR, 'O'},
        {CLIENT_PAUSED | CLIENT_BLOCKED, 'b'},
        {CLIENT_CLOSE_AFTER_REPLY, 'c'},
        {CLIENT_CLOSE_ASAP, 'A'},
        {CLIENT_UNIX, 'U'},
        {CLIENT_NO_EVICT, 'e'},
    };
    static const struct {
        unsigned flag;
        char letter;
    } tracking[] = {
        {TRACKING_ON, 't'},
        {TRACKING_BROKEN_REDIRECT, 'R'},
        {TRACKING_BCAST, 'B'},
    };
    size_t before = out->len;
    if (c->session.subscriptions > 0) {
        buf_append_char(out, 'P');
    }
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (c->flags & letters[i].flag) {
            buf_append_char(out, letters[i].letter);
        }
    }
    if (transaction_length(&c->session) >= 0) {
        buf_append_char(out, 'x');
    }
    if (watching_is_dirty(&c->session.watches)) {
        buf_append_char(out, 'd');
    }
    if (c->session.no_touch) {
        buf_append_char(out, 'T');
    }
    for (size_t i = 0; i < sizeof(tracking) / sizeof(tracking[0]); i++) {
        if (c->session.tracking & tracking[i].flag) {
            buf_append_char(out, tracking[i].letter);
        }
    }
    if (out->len == before) {
        buf_append_char(out, 'N');
    }
}

/* The command that the client runs, waits with, or ran last. */
static const char *command_name(const struct client *c, const struct command *running)
{
    if (c->session.execution) {
        running = c->session.execution->cmd;
    }
    if (!running && c->flags & CLIENT_PAUSED && !c->blocked) {
        const struct request *request = &c->held->request;
        running = command_find(request->argv[0]);
        if (running && running->subcommands && request->argc > 1) {
            running = command_find_sub(running, request->argv[1]);
        }
    }
    if (!running) {
        running = c->session.last_command;
    }
    return running ? running->full_name : "NULL";
}

/* Bytes of the request that is being read or waits. */
static size_t argument_bytes(const struct client *c)
{
    return parser_memory_bytes(&c->parser) + blocked_memory_bytes(c) + held_argument_bytes(c);
}

/* Appends `label` (with its '=') and the value; `text` may be NULL. */
static void append_text(struct buf *out, const char *label, const char *text)
{
    buf_append_cstr(out, label);
    if (text) {
        buf_append_cstr(out, text);
    }
}

static void append_number(struct buf *out, const char *label, uint64_t value)
{
    buf_append_cstr(out, label);
    out->len += num_format_u64(buf_reserve(out, NUM_I64_MAX_CHARS), value);
}

static void append_signed(struct buf *out, const char *label, int64_t value)
{
    buf_append_cstr(out, label);
    out->len += num_format_i64(buf_reserve(out, NUM_I64_MAX_CHARS), value);
}

/* What a line takes, if it is no long one. */
#define LINE_BYTES 512

static uint64_t seconds_since(uint64_t then_s, uint64_t now_s)
{
    return now_s > then_s ? now_s - then_s : 0;
}

void client_append_line(struct buf *out, struct client *c, const struct command *running,
                        uint64_t now_s)
{
    const struct session *s = &c->session;
    buf_reserve(out, LINE_BYTES);
    append_number(out, "id=", s->id);
    append_text(out, " addr=", s->peer);
    append_text(out, " laddr=", client_local_addr(c));
    append_number(out, " fd=", (uint64_t)c->fd);
    append_text(out, " name=", s->name);
    append_number(out, " age=", seconds_since(c->created_s, now_s));
    append_number(out, " idle=", seconds_since(c->active_s, now_s));
    append_text(out, " flags=", NULL);
    append_flags(out, c);
    append_number(out, " db=", (uint64_t)s->db_index);
    struct subscription_counts counts = subscriptions_count(c);
    append_number(out, " sub=", counts.channels);
    append_number(out, " psub=", counts.patterns);
    append_number(out, " ssub=", counts.shards);
    append_signed(out, " multi=", transaction_length(s));
    append_number(out, " qbuf=", input_bytes(c).len);
    append_number(out, " qbuf-free=", c->pending.capacity - c->pending.len);
    append_number(out, " argv-mem=", argument_bytes(c));
    /* Replies are built in the thread's arena: a client has no reply buffer of its own (rbs, rbp,
     * obl), only the list of what its socket did not take. */
    append_number(out, " multi-mem=", transaction_bytes(s));
    append_number(out, " rbs=0 rbp=0 obl=0 oll=", c->out_count);
    append_number(out, " omem=", c->out_bytes + feed_pending(c));
    append_number(out, " tot-mem=", client_memory_bytes(c) + feed_pending(c));
    append_text(out, " events=r", c->flags & CLIENT_WANTS_WRITE ? "w" : "");
    append_text(out, " cmd=", command_name(c, running));
    append_text(out, " user=", s->user);
    append_signed(out, " redir=", tracking_redirect_id(c));
    append_number(out, " resp=", (uint64_t)s->proto);
    append_text(out, " lib-name=", s->lib_name);
    append_text(out, " lib-ver=", s->lib_ver);
    buf_append_char(out, '\n');
}

static uint64_t mono_s(void)
{
    return clock_mono_us() / 1000000;
}

void client_info_command(struct call *c)
{
    struct buf out = {0};
    client_append_line(&out, client_of(c->session), c->cmd, mono_s());
    reply_verbatim(c->reply, "txt", buf_slice(&out));
    buf_deinit(&out);
}

/* ---- CLIENT LIST ---- */

struct listing {
    struct call *call;
    struct buf out;
    uint64_t now_s;
    bool by_kind;
    enum client_kind kind;
};

static bool list_one(struct client *client, void *context)
{
    struct listing *l = context;
    if (client->flags & CLIENT_CLOSE_ASAP || (l->by_kind && client_kind_of(client) != l->kind)) {
        return true; /* as good as gone, or not asked for */
    }
    const struct command *running = client_of(l->call->session) == client ? l->call->cmd : NULL;
    client_append_line(&l->out, client, running, l->now_s);
    return true;
}

/* Clients by rising id, so that long lists of ids cost no walk each. */
struct directory {
    struct client **clients;
    size_t count, capacity;
};

static bool enter_directory(struct client *client, void *context)
{
    struct directory *d = context;
    if (d->count == d->capacity) {
        d->capacity = d->capacity ? 2 * d->capacity : 64;
        d->clients = mem_realloc(d->clients, d->capacity * sizeof(struct client *));
    }
    /* Oldest first is nearly by id: who comes out of order sinks by a few places. */
    size_t at = d->count++;
    while (at > 0 && d->clients[at - 1]->session.id > client->session.id) {
        d->clients[at] = d->clients[at - 1];
        at--;
    }
    d->clients[at] = client;
    return true;
}

static struct client *find_in_directory(const struct directory *d, uint64_t id)
{
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->clients[middle]->session.id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < d->count && d->clients[low]->session.id == id ? d->clients[low] : NULL;
}

/* The link to our primary, `id` 0: whatever its id is. */
static void list_upstream(struct listing *l, uint64_t id) REQUIRES(gil);
static void list_upstream(struct listing *l, uint64_t id)
{
    struct upstream u;
    if ((l->by_kind && l->kind != CLIENT_KIND_PRIMARY) || !upstream_look(&u) ||
        (id && id != u.id)) {
        return;
    }
    buf_printf(&l->out,
               "id=%" PRIu64 " addr=%s laddr=%s fd=%d name= age=%" PRId64 " idle=%" PRId64
               " flags=M db=%d sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0"
               " multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=NULL"
               " user=(superuser) redir=-1 resp=2 lib-name= lib-ver=\n",
               u.id, u.peer, u.local, u.fd, u.age_s, u.idle_s, u.db);
}

/* CLIENT LIST ID id ...: all ids are checked before the first is looked for. */
static bool list_ids(struct call *c, struct listing *l) REQUIRES(gil)
{
    struct directory directory = {0};
    int64_t id;
    for (int i = 3; i < c->argc; i++) {
        if (!call_arg_i64_error(c, i, &id, "ERR Invalid client ID")) {
            return false;
        }
    }
    client_each(enter_directory, &directory);
    for (int i = 3; i < c->argc; i++) {
        struct client *client = NULL;
        if (num_parse_i64(c->argv[i], &id) && id > 0) {
            client = find_in_directory(&directory, (uint64_t)id);
        }
        if (client) {
            list_one(client, l);
        } else if (num_parse_i64(c->argv[i], &id) && id > 0) {
            list_upstream(l, (uint64_t)id);
        }
    }
    mem_free(directory.clients);
    return true;
}

void client_list_command(struct call *c)
{
    struct listing l = {.call = c, .now_s = mono_s()};
    if (c->argc == 4 && call_arg_is(c, 2, "type")) {
        l.by_kind = true;
        if (!client_kind_parse(c, 3, &l.kind)) {
            return;
        }
        client_each(list_one, &l);
        list_upstream(&l, 0);
    } else if (c->argc > 3 && call_arg_is(c, 2, "id")) {
        if (!list_ids(c, &l)) {
            return;
        }
    } else if (c->argc != 2) {
        reply_syntax_error(c->reply);
        return;
    } else {
        client_each(list_one, &l);
        list_upstream(&l, 0);
    }
    reply_verbatim(c->reply, "txt", buf_slice(&l.out));
    buf_deinit(&l.out);
}
