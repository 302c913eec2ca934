/* INFO's persistence and keyspace sections. What does not exist yet shows what a server shows that
 * never saved. */
#include "server/sections_priv.h"
#include "base/field.h"
#include "keyspace/db.h"

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
            field_part_i64(out, "db", i);
            field_part_u64(out, ":keys=", keys);
            field_part_u64(out, ",expires=", db->expires);
            field_part_i64(out, ",avg_ttl=", db->avg_ttl_ms);
            field_part_u64(out, ",cached_keys=", keys);
            /* Redis 7.4's; only where there is something to tell, so that the line is 7.2's else.
             */
            if (db_member_expires(db)) {
                field_part_u64(out, ",subexpiry=", db_member_expires(db));
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
