/* See identity.h. */
#include "engine/identity.h"

#include "base/mem.h"
#include "base/version.h"

#include <stdatomic.h>

static char *version, *zone;
static _Atomic bool replica;

const char *identity_version(void)
{
    return version && version[0] ? version : REDIS_COMPAT_VERSION;
}

bool identity_is_replica(void)
{
    return atomic_load_explicit(&replica, memory_order_relaxed);
}

void identity_set_replica(bool is_replica)
{
    atomic_store_explicit(&replica, is_replica, memory_order_relaxed);
}

const char *identity_zone(void)
{
    return zone ? zone : "";
}

void identity_teardown(void)
{
    mem_free(version);
    mem_free(zone);
    version = zone = NULL;
}

/* The texts stand in INFO's lines. */
static bool check_line(const struct option *option UNUSED, struct slice text, const char **error)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f) {
            *error = "argument must not contain control characters";
            return false;
        }
    }
    return true;
}

/* Clients compare numbers with dots between them. */
static bool check_version(const struct option *option UNUSED, struct slice text, const char **error)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!(c >= '0' && c <= '9') && c != '.') {
            *error = "argument must be a version, such as 6.2.14";
            return false;
        }
    }
    return true;
}

const struct option identity_options[] = {
    {.name = "version-override",
     .type = OPTION_STRING,
     .flags = OPTION_IMMUTABLE,
     .target = &version,
     .initial = "",
     .check = check_version},
    {.name = "availability-zone",
     .type = OPTION_STRING,
     .target = &zone,
     .initial = "",
     .check = check_line},
    {.name = NULL},
};
