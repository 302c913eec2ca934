/* See peers.h: the answers of a server that is no active replica. */
#include "repl/peers.h"

static bool no(void)
{
    return false;
}

static bool configure(struct slice host UNUSED, int port UNUSED)
{
    return true;
}

static bool put_lines(bool in_include UNUSED, struct buf *out UNUSED)
{
    return false;
}

static bool is_peer(const struct client *c UNUSED)
{
    return false;
}

static bool hear(struct call *c UNUSED)
{
    return false;
}

static int none(void)
{
    return 0;
}

static void write_nobody(struct buf *out UNUSED, int first UNUSED, int64_t now_ms UNUSED)
{
}

static int none_since(int64_t ms UNUSED)
{
    return 0;
}

static const struct peers_ops nobody = {.wanted = no,
                                        .on = no,
                                        .configure = configure,
                                        .put_lines = put_lines,
                                        .count = none,
                                        .heard_since = none_since,
                                        .write_all = write_nobody,
                                        .is_peer = is_peer,
                                        .hear = hear};

const struct peers_ops *peers = &nobody;
