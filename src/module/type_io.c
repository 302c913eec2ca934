/* See type_io.h. What modules write and read. */
#include "module/type_io.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/command.h"
#include "module/text.h"
#include "module/words.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* "%La" of any long double, its sign and a NUL. */
#define LONG_DOUBLE_CHARS 64
/* Chunks of what a method's commands are made of. */
#define WORDS_CHUNK_BYTES ((size_t)1024)

void io_begin(RedisModuleIO *io, const RedisModuleType *t, struct module_place at)
{
    io->type = t;
    io->at = at;
    io->outer = type_enter(t);
}

/* In a child nothing is locked, and nobody else is there. */
void io_end(RedisModuleIO *io) NO_THREAD_SAFETY_ANALYSIS
{
    if (io->has_ctx) {
        context_end(&io->ctx);
    }
    if (io->key) {
        text_release(io->key);
    }
    type_leave(io->outer);
}

/* ---- writing ---- */

/* The writer, with the kind of what comes; NULL: there is none. */
static struct rdb_writer *put_kind(RedisModuleIO *io, enum rdb_module_item kind)
{
    if (!io->w || io->failed || io->w->error) {
        io->failed = true;
        return NULL;
    }
    rdb_write_len(io->w, kind);
    return io->w;
}

static void rm_save_unsigned(RedisModuleIO *io, uint64_t value)
{
    struct rdb_writer *w = put_kind(io, RDB_MODULE_UNSIGNED);
    if (w) {
        rdb_write_len(w, value);
    }
}

/* As the unsigned number of the same bits, which is how Redis writes them. */
static void rm_save_signed(RedisModuleIO *io, int64_t value)
{
    rm_save_unsigned(io, (uint64_t)value);
}

static void save_bytes(RedisModuleIO *io, struct slice bytes)
{
    struct rdb_writer *w = put_kind(io, RDB_MODULE_STRING);
    if (w) {
        rdb_write_string(w, bytes);
    }
}

static void rm_save_string(RedisModuleIO *io, RedisModuleString *s)
{
    save_bytes(io, text_slice(s));
}

static void rm_save_string_buffer(RedisModuleIO *io, const char *bytes, size_t len)
{
    save_bytes(io, slice_of(bytes, len));
}

static void rm_save_double(RedisModuleIO *io, double value)
{
    struct rdb_writer *w = put_kind(io, RDB_MODULE_DOUBLE);
    if (w) {
        rdb_write_double(w, value);
    }
}

static void rm_save_float(RedisModuleIO *io, float value)
{
    uint32_t bits;
    unsigned char bytes[4];
    struct rdb_writer *w = put_kind(io, RDB_MODULE_FLOAT);
    memcpy(&bits, &value, sizeof(bits));
    for (int i = 0; i < 4; i++) {
        bytes[i] = (unsigned char)(bits >> 8 * i);
    }
    if (w) {
        rdb_write(w, bytes, sizeof(bytes));
    }
}

/* As text, hexadecimal: no bit is lost, and other machines read it. */
static void rm_save_long_double(RedisModuleIO *io, long double value)
{
    char text[LONG_DOUBLE_CHARS];
    int len = snprintf(text, sizeof(text), "%La", value);
    assert(len > 0 && (size_t)len < sizeof(text));
    save_bytes(io, slice_of(text, (size_t)len));
}

/* ---- reading ---- */

static bool handles_errors(const RedisModuleIO *io)
{
    return io->type->module->options & REDISMODULE_OPTIONS_HANDLE_IO_ERRORS;
}

/* False, and the value will be refused. */
static bool fail(RedisModuleIO *io)
{
    if (!io->failed) {
        log_warning("Module '%s' read another kind of datum than is there, of a value of its type "
                    "'%s'%s%.*s%s",
                    io->type->module->name, io->type->kind.name, io->at.key.ptr ? " of key '" : "",
                    io->at.key.ptr ? (int)io->at.key.len : 0, io->at.key.ptr ? io->at.key.ptr : "",
                    io->at.key.ptr ? "'" : "");
    }
    io->failed = true;
    return false;
}

/* The next item is of that kind. */
static bool take_kind(RedisModuleIO *io, enum rdb_module_item kind)
{
    uint64_t found;
    if (io->failed || !io->r || !rdb_read_len(io->r, &found)) {
        return fail(io);
    }
    return found == kind || fail(io);
}

static uint64_t rm_load_unsigned(RedisModuleIO *io)
{
    uint64_t value;
    if (!take_kind(io, RDB_MODULE_UNSIGNED)) {
        return 0;
    }
    return rdb_read_len(io->r, &value) ? value : (uint64_t)fail(io);
}

static int64_t rm_load_signed(RedisModuleIO *io)
{
    return (int64_t)rm_load_unsigned(io);
}

static bool load_bytes(RedisModuleIO *io, struct buf *bytes)
{
    return take_kind(io, RDB_MODULE_STRING) && (rdb_read_string(io->r, bytes) || fail(io));
}

static RedisModuleString *rm_load_string(RedisModuleIO *io)
{
    struct buf bytes = {0};
    bool ok = load_bytes(io, &bytes);
    RedisModuleString *s = ok || !handles_errors(io) ? text_create(buf_slice(&bytes)) : NULL;
    buf_deinit(&bytes);
    return s;
}

/* The module frees it by RedisModule_Free. */
static char *rm_load_string_buffer(RedisModuleIO *io, size_t *len)
{
    struct buf bytes = {0};
    bool ok = load_bytes(io, &bytes);
    char *copy =
        ok || !handles_errors(io) ? mem_dup(bytes.data ? bytes.data : "", bytes.len) : NULL;
    if (len) {
        *len = ok ? bytes.len : 0;
    }
    buf_deinit(&bytes);
    return copy;
}

static double rm_load_double(RedisModuleIO *io)
{
    double value;
    if (!take_kind(io, RDB_MODULE_DOUBLE)) {
        return 0;
    }
    return rdb_read_double(io->r, &value) ? value : (double)fail(io);
}

static float rm_load_float(RedisModuleIO *io)
{
    unsigned char b[4];
    float value;
    if (!take_kind(io, RDB_MODULE_FLOAT) || !(rdb_read(io->r, b, sizeof(b)) || fail(io))) {
        return 0;
    }
    uint32_t bits =
        (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static long double rm_load_long_double(RedisModuleIO *io)
{
    struct buf bytes = {0};
    long double value = 0;
    if (load_bytes(io, &bytes) && !num_parse_long_double(buf_slice(&bytes), &value)) {
        bool is_nan = bytes.len >= 3 && memcmp(buf_cstr(&bytes) + bytes.len - 3, "nan", 3) == 0;
        value = is_nan ? (long double)NAN : 0;
        if (!is_nan) {
            fail(io);
        }
    }
    buf_deinit(&bytes);
    return value;
}

static int rm_is_error(RedisModuleIO *io)
{
    return io->failed || (io->w && io->w->error);
}

/* ---- commands ---- */

/* The commands that make a value, from aof_rewrite. */
static void rm_emit_aof(RedisModuleIO *io, const char *name, const char *format, ...)
{
    struct words w;
    struct arena arena;
    va_list arguments;
    if (io->failed || !io->put) {
        return;
    }
    if (!command_find(slice_cstr(name)) && !command_find_original(slice_cstr(name))) {
        log_warning("Module '%s' tells the AOF a command that does not exist, '%s', of its type "
                    "'%s'",
                    io->type->module->name, name, io->type->kind.name);
        io->failed = true;
        return;
    }
    arena_init(&arena, WORDS_CHUNK_BYTES);
    va_start(arguments, format);
    if (words_parse(&w, &arena, name, format, arguments)) {
        io->put(io->put_context, w.argc, w.argv);
    } else {
        log_warning("Module '%s' tells the AOF a command in a format that is none, '%s', of its "
                    "type '%s'",
                    io->type->module->name, format, io->type->kind.name);
        io->failed = true;
    }
    va_end(arguments);
    arena_deinit(&arena);
}

/* ---- what methods ask ---- */

static RedisModuleCtx *rm_context(RedisModuleIO *io) NO_THREAD_SAFETY_ANALYSIS
{
    if (!io->has_ctx) {
        context_begin(&io->ctx, io->type->module, ACCESS_EXCLUSIVE);
        io->ctx.db_index = io->at.db >= 0 ? io->at.db : 0;
        io->has_ctx = true;
    }
    return &io->ctx;
}

static const RedisModuleString *rm_key(RedisModuleIO *io)
{
    if (!io->key && io->at.key.ptr) {
        io->key = text_create(io->at.key);
    }
    return io->key;
}

static int rm_db(RedisModuleIO *io)
{
    return io->at.db;
}

const struct api_function type_io_functions[] = {
    API(SaveUnsigned, rm_save_unsigned),
    API(SaveSigned, rm_save_signed),
    API(SaveString, rm_save_string),
    API(SaveStringBuffer, rm_save_string_buffer),
    API(SaveDouble, rm_save_double),
    API(SaveFloat, rm_save_float),
    API(SaveLongDouble, rm_save_long_double),
    API(LoadUnsigned, rm_load_unsigned),
    API(LoadSigned, rm_load_signed),
    API(LoadString, rm_load_string),
    API(LoadStringBuffer, rm_load_string_buffer),
    API(LoadDouble, rm_load_double),
    API(LoadFloat, rm_load_float),
    API(LoadLongDouble, rm_load_long_double),
    API(EmitAOF, rm_emit_aof),
    API(IsIOError, rm_is_error),
    API(GetContextFromIO, rm_context),
    API(GetKeyNameFromIO, rm_key),
    API(GetDbIdFromIO, rm_db),
    {NULL, NULL},
};
