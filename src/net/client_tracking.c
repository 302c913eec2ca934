/* CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO: client-side caching as clients ask for it. */
#include "net/client_commands_priv.h"

#include "base/mem.h"
#include "net/tracking.h"

/* ---- CLIENT TRACKING ---- */

struct request_options {
    unsigned flags;
    struct client *target;
    struct slice *prefixes; /* owned */
    int prefix_count;
};

static bool parse_target(struct call *c, int i, struct request_options *o) REQUIRES(gil)
{
    int64_t id;
    if (o->target) {
        reply_error(c->reply, "ERR A client can only redirect to a single other client");
        return false;
    }
    if (!call_arg_i64(c, i, &id)) {
        return false;
    }
    o->target = id > 0 ? client_find((uint64_t)id) : NULL;
    if (!o->target || o->target->flags & CLIENT_CLOSE_ASAP) {
        reply_error(c->reply, "ERR The client ID you want redirect to does not exist");
        return false;
    }
    return true;
}

static unsigned flag_of(const struct call *c, int i)
{
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {
        {"bcast", TRACKING_BCAST},
        {"optin", TRACKING_OPTIN},
        {"optout", TRACKING_OPTOUT},
        {"noloop", TRACKING_NOLOOP},
    };
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        if (call_arg_is(c, i, words[w].word)) {
            return words[w].flag;
        }
    }
    return 0;
}

static bool parse_options(struct call *c, struct request_options *o) REQUIRES(gil)
{
    o->prefixes = mem_alloc((size_t)c->argc * sizeof(struct slice));
    for (int i = 3; i < c->argc; i++) {
        bool more = i + 1 < c->argc;
        unsigned flag = flag_of(c, i);
        if (flag) {
            o->flags |= flag;
        } else if (more && call_arg_is(c, i, "redirect")) {
            if (!parse_target(c, ++i, o)) {
                return false;
            }
        } else if (more && call_arg_is(c, i, "prefix")) {
            o->prefixes[o->prefix_count++] = c->argv[++i];
        } else {
            reply_syntax_error(c->reply);
            return false;
        }
    }
    return true;
}

static bool overlap(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    return len == 0 || memcmp(a.ptr, b.ptr, len) == 0;
}

static void reply_overlap(struct call *c, struct slice a, const char *which, struct slice b)
{
    reply_errorf(c->reply,
                 "ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for a single client "
                 "must not overlap.",
                 (int)(a.len < 128 ? a.len : 128), a.ptr, which, (int)(b.len < 128 ? b.len : 128),
                 b.ptr);
}

static bool check_prefixes(struct call *c, const struct request_options *o)
{
    for (int i = 0; i < o->prefix_count; i++) {
        struct slice old;
        for (size_t k = 0; (old = tracking_prefix_at(client_of(c->session), k)).ptr; k++) {
            if (overlap(o->prefixes[i], old)) {
                reply_overlap(c, o->prefixes[i], "an existing", old);
                return false;
            }
        }
        for (int k = i + 1; k < o->prefix_count; k++) {
            if (overlap(o->prefixes[i], o->prefixes[k])) {
                reply_overlap(c, o->prefixes[i], "another provided", o->prefixes[k]);
                return false;
            }
        }
    }
    return true;
}

/* Why the session, as it tracks now, cannot track that way; NULL when it can. */
static const char *conflict(const struct request_options *o, unsigned now)
{
    unsigned flags = o->flags;
    if (o->prefix_count > 0 && !(flags & TRACKING_BCAST)) {
        return "ERR PREFIX option requires BCAST mode to be enabled";
    }
    if (now & TRACKING_ON && (now ^ flags) & TRACKING_BCAST) {
        return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, "
               "and then re-enabling it with a different mode.";
    }
    if (flags & TRACKING_BCAST && flags & (TRACKING_OPTIN | TRACKING_OPTOUT)) {
        return "ERR OPTIN and OPTOUT are not compatible with BCAST";
    }
    if (flags & TRACKING_OPTIN && flags & TRACKING_OPTOUT) {
        return "ERR You can't specify both OPTIN mode and OPTOUT mode";
    }
    if ((flags & TRACKING_OPTIN && now & TRACKING_OPTOUT) ||
        (flags & TRACKING_OPTOUT && now & TRACKING_OPTIN)) {
        return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, "
               "and then re-enabling it with a different mode.";
    }
    return NULL;
}

static void switch_on(struct call *c, const struct request_options *o) REQUIRES(gil)
{
    const char *error = conflict(o, c->session->tracking);
    if (error) {
        reply_error(c->reply, error);
    } else if (check_prefixes(c, o)) {
        struct tracking_wish wish = {o->flags, o->target, o->prefixes, o->prefix_count};
        tracking_enable(client_of(c->session), &wish);
        reply_ok(c->reply);
    }
}

void client_tracking_command(struct call *c)
{
    struct request_options o = {0};
    if (!parse_options(c, &o)) {
        /* has replied */
    } else if (call_arg_is(c, 2, "on")) {
        switch_on(c, &o);
    } else if (call_arg_is(c, 2, "off")) {
        tracking_disable(client_of(c->session));
        reply_ok(c->reply);
    } else {
        reply_syntax_error(c->reply);
    }
    mem_free(o.prefixes);
}

/* ---- CLIENT CACHING, GETREDIR, TRACKINGINFO ---- */

void client_caching_command(struct call *c)
{
    unsigned now = c->session->tracking;
    bool yes = call_arg_is(c, 2, "yes");
    if (!(now & TRACKING_ON)) {
        reply_error(c->reply, "ERR CLIENT CACHING can be called only when the client is in "
                              "tracking mode with OPTIN or OPTOUT mode enabled");
    } else if (!yes && !call_arg_is(c, 2, "no")) {
        reply_syntax_error(c->reply);
    } else if (yes && !(now & TRACKING_OPTIN)) {
        reply_error(c->reply,
                    "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    } else if (!yes && !(now & TRACKING_OPTOUT)) {
        reply_error(c->reply,
                    "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    } else {
        c->session->tracking |= TRACKING_CACHING;
        reply_ok(c->reply);
    }
}

void client_getredir_command(struct call *c)
{
    reply_i64(c->reply, tracking_redirect_id(client_of(c->session)));
}

static void reply_flags(struct call *c)
{
    static const struct {
        unsigned all;
        const char *word;
    } words[] = {
        {TRACKING_ON, "on"},         {TRACKING_BCAST, "bcast"},
        {TRACKING_OPTIN, "optin"},   {TRACKING_OPTIN | TRACKING_CACHING, "caching-yes"},
        {TRACKING_OPTOUT, "optout"}, {TRACKING_OPTOUT | TRACKING_CACHING, "caching-no"},
        {TRACKING_NOLOOP, "noloop"}, {TRACKING_BROKEN_REDIRECT, "broken_redirect"},
    };
    unsigned now = c->session->tracking;
    uint32_t handle = reply_deferred(c->reply);
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((now & words[i].all) == words[i].all) {
            reply_bulk_cstr(c->reply, words[i].word);
            count++;
        }
    }
    if (count == 0) {
        reply_bulk_cstr(c->reply, "off");
        count++;
    }
    reply_set_deferred_set(c->reply, handle, count);
}

void client_trackinginfo_command(struct call *c)
{
    const struct client *client = client_of(c->session);
    struct slice prefix;
    uint64_t count = 0;
    reply_map(c->reply, 3);
    reply_bulk_cstr(c->reply, "flags");
    reply_flags(c);
    reply_bulk_cstr(c->reply, "redirect");
    reply_i64(c->reply, tracking_redirect_id(client));
    reply_bulk_cstr(c->reply, "prefixes");
    while (tracking_prefix_at(client, count).ptr) {
        count++;
    }
    reply_array(c->reply, count);
    for (size_t i = 0; (prefix = tracking_prefix_at(client, i)).ptr; i++) {
        reply_bulk(c->reply, prefix);
    }
}
