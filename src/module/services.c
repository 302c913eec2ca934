/* Clocks, chance, the log and the latency monitor, for modules. Without lock. */
#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "engine/latency.h"
#include "module/type_io.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Longest line of a module; the log cuts its own at the same length. */
#define LINE_BYTES 1024

static mstime_t rm_milliseconds(void)
{
    return clock_wall_ms();
}

static ustime_t rm_microseconds(void)
{
    return clock_wall_us();
}

static uint64_t rm_monotonic_microseconds(void)
{
    return clock_mono_us();
}

static void rm_get_random_bytes(unsigned char *out, size_t len)
{
    rand_secret(out, len);
}

static void rm_get_random_hex_chars(char *out, size_t len)
{
    rand_hex(out, len);
}

static enum log_level level_of(const char *name)
{
    return !strcasecmp(name, "debug")     ? LOG_DEBUG_LEVEL
           : !strcasecmp(name, "notice")  ? LOG_NOTICE
           : !strcasecmp(name, "warning") ? LOG_WARNING
                                          : LOG_VERBOSE;
}

static void rm_log(RedisModuleCtx *ctx, const char *level, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void rm_log(RedisModuleCtx *ctx, const char *level, const char *format, ...)
{
    const struct module *m = ctx ? ctx->module : NULL;
    if (level_of(level) < log_level()) {
        return;
    }
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log_write(level_of(level), "<%s> %s", m && m->name ? m->name : "module", line);
}

static void rm_assert(const char *condition, const char *file, int line)
{
    log_warning("A module's assertion failed: %s, %s:%d", condition, file, line);
    abort();
}

static void rm_latency_add_sample(const char *event, mstime_t latency)
{
    char name[LATENCY_NAME_BYTES];
    if (latency >= 0 && latency_wants((uint64_t)latency)) {
        snprintf(name, sizeof(name), "%s", event);
        latency_note(name, (uint64_t)latency, clock_wall_ms() / 1000);
    }
}

static void rm_log_io_error(RedisModuleIO *io, const char *level, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void rm_log_io_error(RedisModuleIO *io, const char *level, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (level_of(level) >= log_level()) {
        log_write(level_of(level), "<%s> %s", io->type->module->name, line);
    }
}

const struct api_function service_functions[] = {
    API(Milliseconds, rm_milliseconds),
    API(Microseconds, rm_microseconds),
    API(CachedMicroseconds, rm_microseconds),
    API(MonotonicMicroseconds, rm_monotonic_microseconds),
    API(GetRandomBytes, rm_get_random_bytes),
    API(GetRandomHexChars, rm_get_random_hex_chars),
    API(Log, rm_log),
    API(LogIOError, rm_log_io_error),
    API(_Assert, rm_assert),
    API(LatencyAddSample, rm_latency_add_sample),
    {NULL, NULL},
};
