/* redis:// URIs, as -u takes them.
 *
 * Forms: redis://[[user]:[password]@]host[:port][/db], also with keydb:// and with an IPv6 address
 * in brackets, and unix://[[user]:[password]@]/path/to/socket[?db=N] (redis+socket:// likewise).
 * User, password and path may be percent-encoded. rediss:// asks for TLS. */
#ifndef TOOLS_CLI_URI_H
#define TOOLS_CLI_URI_H

#include <stdbool.h>

struct uri {
    char *user;      /* NULL when absent or empty */
    char *password;  /* NULL when absent or empty */
    char *host;      /* NULL when absent */
    char *unix_path; /* NULL: TCP */
    int port;        /* 0 when absent */
    bool secure;     /* TLS */
    int db;          /* -1 when absent */
};

/* Parses `text`. Returns NULL and fills `out`, whose strings the caller owns (uri_deinit()), or
 * returns the mistake as a constant text, with nothing to free. */
const char *uri_parse(const char *text, struct uri *out);

/* Frees the strings and forgets them. */
void uri_deinit(struct uri *u);

#endif
