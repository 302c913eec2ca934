/* Who may see what: HTTP's Authorization against ACL users and `metrics-token`. State: world
 * (settings, users); read awake. */
#ifndef METRICS_ACCESS_H
#define METRICS_ACCESS_H

#include "metrics/http.h"

/* What a visitor may see, by the commands that would show it. */
struct visitor {
    bool sees_slowlog; /* SLOWLOG GET */
    bool sees_keys;    /* SCAN and MEMORY USAGE of every key */
};

/* Lets a visitor in who has the token, or is a user that may run INFO; who says nothing is the
 * default user, as whoever connects is, unless there is a token (or protected mode, from another
 * machine). 200 with *v; else 401 (with the question for a password in `fields`) or 403. Denials
 * are in ACL LOG. Awake. */
int access_check(const struct http_request *request, const struct http_peer *peer,
                 struct visitor *v, struct evkeyvalq *fields) MUST_CHECK;

#endif
