/* See audit.h. */
#include "net/audit.h"

#include "base/log.h"
#include "net/tls.h"
#include "net/tls_names.h"
#include "net/tls_settings.h"

/* A line of the log has room for about so much: what is beyond is counted. */
#define AUDIT_KEYS_MAX 16
#define AUDIT_KEY_BYTES_MAX 48
#define AUDIT_NAME_BYTES_MAX 96

static bool is_exempt(const struct client *c)
{
    const struct tls_name_list *exempt = &tls_settings.unaudited;
    const struct x509_st *certificate = tls_certificate(c->tls);
    return exempt->count == 0 ||
           (certificate && tls_names_match(certificate, exempt->patterns, exempt->count));
}

void audit_choose(struct client *c)
{
    if (c->flags & CLIENT_TLS && !(c->flags & CLIENT_GREETING) && !is_exempt(c)) {
        c->flags |= CLIENT_AUDITED;
    } else {
        c->flags &= ~(uint32_t)CLIENT_AUDITED;
    }
}

static bool choose_one(struct client *c, void *context UNUSED)
{
    audit_choose(c);
    return true;
}

void audit_choose_all(void)
{
    gil_assert_world();
    client_each(choose_one, NULL);
}

/* ---- lines ---- */

static void append_cut(struct buf *line, struct slice text, size_t max)
{
    bool cut = text.len > max;
    buf_append_quoted(line, cut ? slice_of(text.ptr, max) : text);
    if (cut) {
        buf_printf(line, " (%zu bytes)", text.len);
    }
}

static void append_who(struct buf *line, const struct client *c)
{
    struct buf name = {0};
    const struct x509_st *certificate = tls_certificate(c->tls);
    if (certificate) {
        tls_names_append(certificate, &name);
    }
    if (name.len > 0) {
        append_cut(line, buf_slice(&name), AUDIT_NAME_BYTES_MAX);
    } else {
        buf_append_cstr(line, "nobody");
    }
    buf_deinit(&name);
    buf_printf(line, " at %s as %s: ", c->session.peer, c->session.user);
}

static void append_keys(struct buf *line, const struct call *call)
{
    struct key_place places[AUDIT_KEYS_MAX];
    int count = command_find_keys(call->cmd, call->argv, call->argc, places, AUDIT_KEYS_MAX);
    int shown = count < AUDIT_KEYS_MAX ? count : AUDIT_KEYS_MAX;
    for (int i = 0; i < shown; i++) {
        buf_append_cstr(line, i == 0 ? ", keys: " : " ");
        append_cut(line, key_place_name(&places[i], call->argv), AUDIT_KEY_BYTES_MAX);
    }
    if (count > shown) {
        buf_printf(line, " and %d more", count - shown);
    }
}

static void tell_one(const struct client *c, const struct call *call)
{
    struct buf line = {0};
    append_who(&line, c);
    if (call->cmd) {
        buf_append_cstr(&line, call->cmd->full_name);
        append_keys(&line, call);
    } else {
        append_cut(&line, call->argv[0], AUDIT_KEY_BYTES_MAX);
    }
    log_notice("Audit Log: %s", buf_cstr(&line));
    buf_deinit(&line);
}

void audit_tell(const struct client *c, const struct call *calls, int count)
{
    if (c->flags & CLIENT_FED) {
        return; /* a replica says how far it is, again and again */
    }
    for (int i = 0; i < count; i++) {
        if (calls[i].argc > 0) { /* 0: a broken stream's error */
            tell_one(c, &calls[i]);
        }
    }
}
