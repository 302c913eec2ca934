/* INFO's persistence and keyspace sections. What does not exist yet shows what a server shows that
 * never saved. */
#include "server/sections_priv.h"
#include "base/stats.h"
#include "keyspace/db.h"

#include <inttypes.h>

/* persist/ fills it: this is its place. */
static void info_write_persistence(struct buf *out)
{
    (void)out;
}

static void info_write_keyspace(struct buf *out)
{
    bool taken = keyspace_visit();
    for (int i = 0; i < db_count(); i++) {
        const struct db *db = db_at(i);
        uint64_t keys = db_size(db);
        if (keys) {
            buf_printf(out,
                       "db%d:keys=%" PRIu64 ",expires=%" PRIu64 ",avg_ttl=%" PRId64
                       ",cached_keys=%" PRIu64,
                       i, keys, db->expires, db->avg_ttl_ms, keys);
            /* Redis 7.4's; only where there is something to tell, so that the line is 7.2's else.
             */
            if (db_member_expires(db)) {
                buf_printf(out, ",subexpiry=%" PRIu64, db_member_expires(db));
            }
            buf_append_cstr(out, "\r\n");
        }
    }
    keyspace_leave(taken);
}

const struct info_section data_sections[] = {
    {.name = "persistence",
     .title = "Persistence",
     .in_default = true,
     .write = info_write_persistence},
    {.name = "keyspace", .title = "Keyspace", .in_default = true, .write = info_write_keyspace},
    {.name = NULL},
};
