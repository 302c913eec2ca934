/* See tls_rotation.h.
 *
 *   as in force --changed--> changing --as at the last look--> read: in force, or refused
 *
 * A refused state of the files is not read again: they have to change first. */
#include "net/tls_rotation.h"

#include "base/log.h"
#include "engine/gil.h"
#include "net/tls_context.h"
#include "net/tls_settings.h"

/* What tls_context_look_at_files() has said. */
static struct {
    uint64_t last, refused;
} seen;

/* Beside the connections that work on; only the exchange needs the world, for a moment. When a
 * script keeps it, the next look tries anew. */
static void read_anew(uint64_t files) NO_THREAD_SAFETY_ANALYSIS
{
    if (!tls_context_renew()) {
        seen.refused = files;
        log_warning("TLS: the files have changed and can't be used; those read before stay in "
                    "force");
        return;
    }
    if (!gil_try_stop_world()) {
        tls_context_settle(false);
        return;
    }
    tls_context_settle(true);
    gil_resume_world();
    if (tls_context_files() == files) {
        log_notice("TLS: the files have changed and were read anew");
    }
}

void tls_rotation_cron(int64_t wall_ms UNUSED)
{
    if (!tls_settings.rotation || !tls_is_wanted()) {
        return;
    }
    uint64_t files = tls_context_look_at_files();
    if (files == seen.last && files != tls_context_files() && files != seen.refused) {
        read_anew(files);
    }
    seen.last = files;
}
