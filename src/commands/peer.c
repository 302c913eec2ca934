/* Reads the peer's text that sessions carry: "ip:port" (IPv6 with or without brackets) or "path:0".
 */
#include "commands/peer.h"

#include <string.h>

static bool peer_starts_with(const char *peer, const char *prefix)
{
    return strncmp(peer, prefix, strlen(prefix)) == 0;
}

bool peer_is_local(const struct session *s)
{
    /* No TCP connection has port 0: that is how sockets with a path show. */
    size_t len = strlen(s->peer);
    bool has_path = s->peer[0] == '/' || (len >= 2 && strcmp(s->peer + len - 2, ":0") == 0);
    if (s->internal || has_path) {
        return true;
    }
    const char *peer = s->peer[0] == '[' ? s->peer + 1 : s->peer;
    if (peer_starts_with(peer, "::ffff:")) {
        peer += strlen("::ffff:");
    }
    /* 127/8, then ::1 with the bracket or the port behind it. */
    return peer_starts_with(peer, "127.") || peer_starts_with(peer, "::1]") ||
           (peer_starts_with(peer, "::1:") && strchr(peer + 4, ':') == NULL);
}
