/* redis:// URIs: see uri.h. */
#include "tools/cli/uri.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/number.h"
#include "tools/common/text.h"

static int hex_value(char c)
{
    static const char lower[] = "0123456789abcdef";
    static const char upper[] = "0123456789ABCDEF";
    for (int i = 0; i < 16; i++) {
        if (c == lower[i] || c == upper[i]) {
            return i;
        }
    }
    return -1;
}

/* Copies text[0, len) with %HH decoded; NULL when an escape is cut or not hexadecimal, or stands
 * for a zero byte. */
static char *decode(const char *text, size_t len)
{
    char *out = tool_malloc(len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            out[n++] = text[i];
            continue;
        }
        if (len - i < 3 || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0) {
            free(out);
            return NULL;
        }
        out[n] = (char)(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
        if (out[n++] == '\0') {
            free(out);
            return NULL;
        }
        i += 2;
    }
    out[n] = '\0';
    return out;
}

/* Reads "user:password@" (or "password@") that ends before `at`. */
static const char *parse_credentials(const char *text, const char *at, struct uri *out)
{
    const char *colon = memchr(text, ':', (size_t)(at - text));
    if (colon != NULL && colon > text) {
        out->user = decode(text, (size_t)(colon - text));
        if (out->user == NULL) {
            return "Incorrect URI encoding";
        }
    }
    const char *password = colon != NULL ? colon + 1 : text;
    if (password < at) {
        out->password = decode(password, (size_t)(at - password));
        if (out->password == NULL) {
            return "Incorrect URI encoding";
        }
    }
    return NULL;
}

static const char *parse_db(const char *text, struct uri *out)
{
    long long db;
    if (text[0] == '\0') {
        return NULL;
    }
    if (!number_parse(text, 0, 1000000, &db)) {
        return "Invalid database number in URI";
    }
    out->db = (int)db;
    return NULL;
}

/* host[:port][/db], or [v6]:port. */
static const char *parse_host(const char *text, struct uri *out)
{
    const char *end;
    const char *host_end;
    if (text[0] == '[') {
        text++;
        host_end = strchr(text, ']');
        if (host_end == NULL) {
            return "Invalid host in URI";
        }
        end = host_end + 1;
    } else {
        host_end = text + strcspn(text, ":/");
        end = host_end;
    }
    if (host_end > text) {
        out->host = tool_copy(text, (size_t)(host_end - text));
    }
    if (*end == ':') {
        size_t digits = strcspn(end + 1, "/");
        char *port_text = tool_copy(end + 1, digits);
        long long port;
        bool good = number_parse(port_text, 1, 65535, &port);
        free(port_text);
        if (!good) {
            return "Invalid port in URI";
        }
        out->port = (int)port;
        end += 1 + digits;
    }
    if (*end == '/') {
        return parse_db(end + 1, out);
    }
    return *end == '\0' ? NULL : "Invalid host in URI";
}

/* /path[?db=N] */
static const char *parse_path(const char *text, struct uri *out)
{
    size_t len = strcspn(text, "?");
    if (len == 0) {
        return "Missing socket path in URI";
    }
    out->unix_path = decode(text, len);
    if (out->unix_path == NULL) {
        return "Incorrect URI encoding";
    }
    if (text[len] == '\0') {
        return NULL;
    }
    if (strncmp(text + len, "?db=", 4) != 0) {
        return "Unknown parameter in URI";
    }
    return parse_db(text + len + 4, out);
}

const char *uri_parse(const char *text, struct uri *out)
{
    static const struct {
        const char *prefix;
        bool is_unix, is_secure;
    } schemes[] = {
        {"redis://", false, false}, {"keydb://", false, false},       {"rediss://", false, true},
        {"unix://", true, false},   {"redis+socket://", true, false},
    };
    memset(out, 0, sizeof(*out));
    out->db = -1;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i].prefix);
        if (strncmp(text, schemes[i].prefix, len) != 0) {
            continue;
        }
        const char *rest = text + len;
        out->secure = schemes[i].is_secure;
        const char *wrong = NULL;
        const char *at = strchr(rest, '@');
        if (at != NULL && (!schemes[i].is_unix || at < rest + strcspn(rest, "/"))) {
            wrong = parse_credentials(rest, at, out);
            rest = at + 1;
        }
        if (wrong == NULL) {
            wrong = schemes[i].is_unix ? parse_path(rest, out) : parse_host(rest, out);
        }
        if (wrong != NULL) {
            uri_deinit(out);
        }
        return wrong;
    }
    return "Invalid URI scheme";
}

void uri_deinit(struct uri *u)
{
    free(u->user);
    free(u->password);
    free(u->host);
    free(u->unix_path);
    memset(u, 0, sizeof(*u));
    u->db = -1;
}
