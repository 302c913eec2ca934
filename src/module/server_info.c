/* What INFO says, as modules ask for it: fields by name. The answer is the module's until it frees
 * it, and does not change. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/info.h"
#include "module/context.h"
#include "module/text.h"

#include <string.h>

/* Lines "name:value", each ended by two NULs in the place of its "\r\n"; the colons are NULs. */
struct RedisModuleServerInfoData {
    struct buf text;
};

static void destroy(void *thing)
{
    RedisModuleServerInfoData *data = thing;
    buf_deinit(&data->text);
    mem_free(data);
}

/* Ends names, values and lines with NULs. */
static void split(char *text, size_t len)
{
    bool in_name = true;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r' || text[i] == '\n') {
            in_name = text[i] == '\n';
            text[i] = '\0';
        } else if (text[i] == ':' && in_name) {
            in_name = false;
            text[i] = '\0';
        }
    }
}

/* One section, or several as INFO has words for them; NULL: the default ones. */
static RedisModuleServerInfoData *rm_get(RedisModuleCtx *ctx, const char *section)
{
    keyspace_assert_exclusive();
    RedisModuleServerInfoData *data = mem_calloc(1, sizeof(*data));
    struct slice word = section ? slice_cstr(section) : slice_of(NULL, 0);
    info_write(&data->text, &word, section ? 1 : 0);
    buf_append_char(&data->text, '\n');
    struct slice text = buf_slice(&data->text);
    split((char *)text.ptr, text.len);
    context_own(ctx, data, destroy);
    return data;
}

static void rm_free(RedisModuleCtx *ctx, RedisModuleServerInfoData *data)
{
    context_disown(ctx, data);
    destroy(data);
}

/* The value, NULL where there is no such field. */
static const char *find(const RedisModuleServerInfoData *data, const char *field)
{
    struct slice text = buf_slice(&data->text);
    const char *at = text.ptr, *end = text.ptr + text.len;
    while (at < end) {
        size_t len = strlen(at);
        const char *next = at + len + 1;
        if (len > 0 && *at != '#' && next < end && strcmp(at, field) == 0) {
            return next;
        }
        /* A line is a name and a value; titles, and the NUL of an empty line, have none. */
        at = len > 0 && *at != '#' && next < end ? next + strlen(next) + 1 : next;
    }
    return NULL;
}

static const char *rm_get_cstring(RedisModuleServerInfoData *data, const char *field)
{
    return find(data, field);
}

static RedisModuleString *rm_get_string(RedisModuleCtx *ctx, RedisModuleServerInfoData *data,
                                        const char *field)
{
    const char *value = find(data, field);
    return value ? text_give(ctx, text_create(slice_cstr(value))) : NULL;
}

/* Numbers: 0 where there is no such field or it is none; *result says so. */
static void tell(int *result, bool fine)
{
    if (result) {
        *result = fine ? REDISMODULE_OK : REDISMODULE_ERR;
    }
}

static long long rm_get_signed(RedisModuleServerInfoData *data, const char *field, int *result)
{
    const char *value = find(data, field);
    int64_t number = 0;
    bool fine = value && num_parse_i64(slice_cstr(value), &number);
    tell(result, fine);
    return fine ? number : 0;
}

static unsigned long long rm_get_unsigned(RedisModuleServerInfoData *data, const char *field,
                                          int *result)
{
    const char *value = find(data, field);
    uint64_t number = 0;
    bool fine = value && num_parse_u64(slice_cstr(value), &number);
    tell(result, fine);
    return fine ? number : 0;
}

static double rm_get_double(RedisModuleServerInfoData *data, const char *field, int *result)
{
    const char *value = find(data, field);
    double number = 0;
    bool fine = value && num_parse_double(slice_cstr(value), &number);
    tell(result, fine);
    return fine ? number : 0;
}

const struct api_function server_info_functions[] = {
    API(GetServerInfo, rm_get),
    API(FreeServerInfo, rm_free),
    API(ServerInfoGetField, rm_get_string),
    API(ServerInfoGetFieldC, rm_get_cstring),
    API(ServerInfoGetFieldSigned, rm_get_signed),
    API(ServerInfoGetFieldUnsigned, rm_get_unsigned),
    API(ServerInfoGetFieldDouble, rm_get_double),
    {NULL, NULL},
};
