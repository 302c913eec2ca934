/* CLIENT KILL: closes connections, chosen by filters that all have to fit. */
#include "net/client_commands_priv.h"

#include "base/clock.h"
#include "base/num.h"
#include "engine/acl.h"
#include "net/upstream.h"

struct kill_filter {
    struct slice addr, laddr;
    bool by_addr, by_laddr;
    uint64_t id;       /* 0: any */
    int64_t max_age_s; /* closes those at least this old; 0: any */
    bool by_kind, skip_me;
    enum client_kind kind;
    const struct acl_user *user; /* NULL: any */
};

/* A parser of the value of one filter: false with the error replied. */
typedef bool (*kill_parser)(struct call *c, int i, struct kill_filter *filter);

static bool parse_id(struct call *c, int i, struct kill_filter *filter)
{
    int64_t id;
    if (!call_arg_range(c, i, 1, INT64_MAX, &id, "ERR client-id should be greater than 0")) {
        return false;
    }
    filter->id = (uint64_t)id;
    return true;
}

static bool parse_type(struct call *c, int i, struct kill_filter *filter)
{
    filter->by_kind = true;
    return client_kind_parse(c, i, &filter->kind);
}

static bool parse_user(struct call *c, int i, struct kill_filter *filter)
{
    struct slice user = c->argv[i];
    filter->user = acl_user_find(user);
    if (!filter->user) {
        reply_errorf(c->reply, "ERR No such user '%.*s'", (int)(user.len < 128 ? user.len : 128),
                     user.ptr);
    }
    return filter->user != NULL;
}

static bool parse_addr(struct call *c, int i, struct kill_filter *filter)
{
    filter->addr = c->argv[i];
    filter->by_addr = true;
    return true;
}

static bool parse_laddr(struct call *c, int i, struct kill_filter *filter)
{
    filter->laddr = c->argv[i];
    filter->by_laddr = true;
    return true;
}

static bool parse_skipme(struct call *c, int i, struct kill_filter *filter)
{
    filter->skip_me = call_arg_is(c, i, "yes");
    if (filter->skip_me || call_arg_is(c, i, "no")) {
        return true;
    }
    reply_syntax_error(c->reply);
    return false;
}

static bool parse_maxage(struct call *c, int i, struct kill_filter *filter)
{
    if (!call_arg_i64_error(c, i, &filter->max_age_s,
                            "ERR maxage is not an integer or out of range")) {
        return false;
    }
    if (filter->max_age_s <= 0) {
        reply_error(c->reply, "ERR maxage should be greater than 0");
        return false;
    }
    return true;
}

static kill_parser find_parser(const struct call *c, int i)
{
    static const struct {
        const char *word;
        kill_parser parse;
    } parsers[] = {
        {"id", parse_id},         {"type", parse_type},   {"user", parse_user},
        {"addr", parse_addr},     {"laddr", parse_laddr}, {"skipme", parse_skipme},
        {"maxage", parse_maxage},
    };
    for (size_t k = 0; k < sizeof(parsers) / sizeof(parsers[0]); k++) {
        if (call_arg_is(c, i, parsers[k].word)) {
            return parsers[k].parse;
        }
    }
    return NULL;
}

/* Filters come as pairs of name and value. */
static bool parse_filters(struct call *c, struct kill_filter *filter)
{
    for (int i = 2; i < c->argc; i += 2) {
        kill_parser parse = i + 1 < c->argc ? find_parser(c, i) : NULL;
        if (!parse) {
            reply_syntax_error(c->reply);
            return false;
        }
        if (!parse(c, i + 1, filter)) {
            return false;
        }
    }
    return true;
}

struct killing {
    struct call *call;
    struct kill_filter filter;
    uint64_t now_s;
    int64_t killed;
};

static bool filter_fits(const struct killing *k, struct client *client)
{
    const struct kill_filter *f = &k->filter;
    if ((f->id && client->session.id != f->id) || (f->user && client->session.acl != f->user) ||
        (f->by_kind && client_kind_of(client) != f->kind) ||
        (f->by_addr && !slice_equal(f->addr, slice_cstr(client->session.peer))) ||
        (f->max_age_s && k->now_s < client->created_s + (uint64_t)f->max_age_s)) {
        return false;
    }
    return !f->by_laddr || slice_equal(f->laddr, slice_cstr(client_local_addr(client)));
}

static bool kill_one(struct client *client, void *context)
{
    gil_assert_world();
    struct killing *k = context;
    bool is_caller = client == client_of(k->call->session);
    if (client->flags & CLIENT_CLOSE_ASAP || (is_caller && k->filter.skip_me) ||
        !filter_fits(k, client)) {
        return true;
    }
    k->killed++;
    if (is_caller) {
        client->flags |= CLIENT_CLOSE_AFTER_REPLY; /* it still gets to know how many */
    } else {
        client_close_asap(client);
    }
    return true;
}

/* The same for the link to our primary, which is cut and made anew. */
static void kill_upstream(struct killing *k) REQUIRES(gil);
static void kill_upstream(struct killing *k)
{
    const struct kill_filter *f = &k->filter;
    struct upstream u;
    if (f->user || !upstream_look(&u) || (f->id && f->id != u.id) ||
        (f->by_kind && f->kind != CLIENT_KIND_PRIMARY) ||
        (f->by_addr && !slice_equal(f->addr, slice_cstr(u.peer))) ||
        (f->by_laddr && !slice_equal(f->laddr, slice_cstr(u.local))) ||
        (f->max_age_s && u.age_s < f->max_age_s)) {
        return;
    }
    upstream_cut();
    k->killed++;
}

void client_kill_command(struct call *c)
{
    bool old_form = c->argc == 3;
    struct killing k = {
        .call = c, .filter = {.skip_me = !old_form}, .now_s = clock_mono_us() / 1000000};
    if (old_form) {
        k.filter.addr = c->argv[2];
        k.filter.by_addr = true;
    } else if (!parse_filters(c, &k.filter)) {
        return;
    }
    client_each(kill_one, &k);
    kill_upstream(&k);
    if (!old_form) {
        reply_i64(c->reply, k.killed);
    } else if (k.killed > 0) {
        reply_ok(c->reply);
    } else {
        reply_error(c->reply, "ERR No such client");
    }
}
