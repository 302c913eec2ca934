/* See tls_settings.h. */
#include "net/tls_settings.h"

#include "base/mem.h"
#include "net/audit.h"
#include "net/listener.h"
#include "net/tls_context.h"

struct tls_settings tls_settings;

/* ---- lists of names ---- */

static void set_names(struct tls_name_list *list, const struct slice *words, int count)
{
    for (int i = 0; i < list->count; i++) {
        mem_free(list->patterns[i]);
    }
    list->count = count;
    for (int i = 0; i < count; i++) {
        list->patterns[i] = mem_dup(words[i].ptr, words[i].len);
    }
}

static bool parse_names(const struct option *option, const struct slice *words, int count,
                        const char **error)
{
    if (count == 1 && words[0].len == 0) {
        set_names(option->target, NULL, 0);
        return true;
    }
    for (int i = 0; i < count; i++) {
        if (words[i].len == 0 || memchr(words[i].ptr, '\0', words[i].len)) {
            *error = "a name must not be empty nor contain a NUL byte";
            return false;
        }
    }
    set_names(option->target, words, count);
    return true;
}

static void format_names(const struct option *option, struct buf *out)
{
    const struct tls_name_list *list = option->target;
    for (int i = 0; i < list->count; i++) {
        buf_printf(out, "%s%s", i ? " " : "", list->patterns[i]);
    }
}

void tls_settings_teardown(void)
{
    char **const texts[] = {
        &tls_settings.cert_file,       &tls_settings.key_file,
        &tls_settings.key_file_pass,   &tls_settings.client_cert_file,
        &tls_settings.client_key_file, &tls_settings.client_key_file_pass,
        &tls_settings.ca_cert_file,    &tls_settings.ca_cert_dir,
        &tls_settings.dh_params_file,  &tls_settings.protocols,
        &tls_settings.ciphers,         &tls_settings.ciphersuites,
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        mem_free(*texts[i]);
        *texts[i] = NULL;
    }
    set_names(&tls_settings.allowed, NULL, 0);
    set_names(&tls_settings.unaudited, NULL, 0);
}

/* ---- putting them into force ---- */

static bool apply(const struct option *option UNUSED, const char **error)
{
    if (tls_context_renew()) {
        return true;
    }
    *error = "Unable to update TLS configuration. Check server logs.";
    return false;
}

static bool apply_port(const struct option *option, const char **error)
{
    if (tls_settings.port > 0 && !tls_context_prepare()) {
        return apply(option, error);
    }
    if (listener_restart()) {
        return true;
    }
    *error = "Unable to listen on this port. Check server logs.";
    return false;
}

static bool apply_replication(const struct option *option, const char **error)
{
    return !tls_settings.replication || tls_context_prepare() || apply(option, error);
}

static bool apply_audit(const struct option *option UNUSED, const char **error UNUSED)
{
    audit_choose_all();
    return true;
}

static const struct option_enum auth_names[] = {
    {"no", TLS_AUTH_NO}, {"yes", TLS_AUTH_YES}, {"optional", TLS_AUTH_OPTIONAL}, {NULL, 0}};

/* A text that makes the context another one. */
#define TLS_TEXT(option_name, field, more_flags)                                                   \
    {                                                                                              \
        .name = option_name, .type = OPTION_STRING, .flags = OPTION_NULLABLE | (more_flags),       \
        .target = &tls_settings.field, .initial = "", .apply = apply, .settle = tls_context_settle \
    }

const struct option tls_options[] = {
    {.name = "tls-port",
     .type = OPTION_INT,
     .target = &tls_settings.port,
     .initial = "0",
     .min = 0,
     .max = 65535,
     .apply = apply_port,
     .settle = tls_context_settle},
    {.name = "tls-replication",
     .type = OPTION_BOOL,
     .target = &tls_settings.replication,
     .initial = "no",
     .apply = apply_replication,
     .settle = tls_context_settle},
    TLS_TEXT("tls-cert-file", cert_file, OPTION_VOLATILE),
    TLS_TEXT("tls-key-file", key_file, OPTION_VOLATILE),
    TLS_TEXT("tls-key-file-pass", key_file_pass, OPTION_SENSITIVE),
    TLS_TEXT("tls-client-cert-file", client_cert_file, OPTION_VOLATILE),
    TLS_TEXT("tls-client-key-file", client_key_file, OPTION_VOLATILE),
    TLS_TEXT("tls-client-key-file-pass", client_key_file_pass, OPTION_SENSITIVE),
    TLS_TEXT("tls-ca-cert-file", ca_cert_file, OPTION_VOLATILE),
    TLS_TEXT("tls-ca-cert-dir", ca_cert_dir, OPTION_VOLATILE),
    TLS_TEXT("tls-dh-params-file", dh_params_file, OPTION_VOLATILE),
    TLS_TEXT("tls-protocols", protocols, 0),
    TLS_TEXT("tls-ciphers", ciphers, 0),
    TLS_TEXT("tls-ciphersuites", ciphersuites, 0),
    {.name = "tls-auth-clients",
     .type = OPTION_ENUM,
     .target = &tls_settings.auth_clients,
     .initial = "yes",
     .enum_names = auth_names,
     .apply = apply,
     .settle = tls_context_settle},
    {.name = "tls-prefer-server-ciphers",
     .type = OPTION_BOOL,
     .target = &tls_settings.prefer_server_ciphers,
     .initial = "no",
     .apply = apply,
     .settle = tls_context_settle},
    {.name = "tls-session-caching",
     .type = OPTION_BOOL,
     .target = &tls_settings.session_caching,
     .initial = "yes",
     .apply = apply,
     .settle = tls_context_settle},
    {.name = "tls-session-cache-size",
     .type = OPTION_INT,
     .target = &tls_settings.session_cache_size,
     .initial = "20480",
     .min = 0,
     .max = INT32_MAX,
     .apply = apply,
     .settle = tls_context_settle},
    {.name = "tls-session-cache-timeout",
     .type = OPTION_INT,
     .target = &tls_settings.session_cache_timeout_s,
     .initial = "300",
     .min = 0,
     .max = INT32_MAX,
     .apply = apply,
     .settle = tls_context_settle},
    {.name = "tls-rotation",
     .type = OPTION_BOOL,
     .target = &tls_settings.rotation,
     .initial = "no"},
    {.name = "tls-allowlist",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_REPEAT,
     .target = &tls_settings.allowed,
     .initial = "",
     .parse = parse_names,
     .format = format_names},
    {.name = "tls-auditlog-blocklist",
     .type = OPTION_CUSTOM,
     .flags = OPTION_MULTI | OPTION_REPEAT,
     .target = &tls_settings.unaudited,
     .initial = "",
     .parse = parse_names,
     .format = format_names,
     .apply = apply_audit},
    {.name = NULL},
};
