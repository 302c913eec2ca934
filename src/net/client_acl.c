/* See client_acl.h. */
#include "net/client_acl.h"

#include "base/clock.h"
#include "engine/acl.h"
#include "net/client_commands_priv.h"
#include "net/subscriptions.h"

struct visit {
    bool (*visit)(struct session *s, void *context);
    void *context;
};

static bool visit_one(struct client *client, void *context)
{
    struct visit *v = context;
    return v->visit(&client->session, v->context);
}

static void each(bool (*visit)(struct session *s, void *context), void *context)
{
    struct visit v = {visit, context};
    gil_assert_world();
    client_each(visit_one, &v);
}

/* The caller still gets its reply. */
static void close_one(struct session *s, bool is_caller)
{
    if (is_caller) {
        client_of(s)->flags |= CLIENT_CLOSE_AFTER_REPLY;
    } else {
        client_close_asap(client_of(s));
    }
}

static bool each_channel(struct session *s,
                         bool (*visit)(struct slice name, bool is_pattern, void *context),
                         void *context)
{
    return subscriptions_each(client_of(s), visit, context);
}

static void describe(const struct session *s, const struct command *running, struct buf *out)
{
    client_append_line(out, client_of(s), running, clock_mono_us() / 1000000);
    out->len--; /* its newline */
}

void client_acl_setup(void)
{
    static const struct acl_clients clients = {
        .each = each, .close = close_one, .each_channel = each_channel, .describe = describe};
    acl_set_clients(&clients);
}
