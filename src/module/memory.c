/* Memory for modules: the server's allocator, so that it is in the server's figures. Without lock.
 */
#include "base/mem.h"
#include "keyspace/evict.h"
#include "module/api.h"
#include "module/text.h"

#include <string.h>

static void *rm_alloc(size_t bytes)
{
    return mem_alloc(bytes);
}

static void *rm_try_alloc(size_t bytes)
{
    return mem_try_alloc(bytes);
}

static void *rm_calloc(size_t count, size_t size)
{
    return mem_calloc(count, size);
}

static void *rm_try_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    void *ptr = mem_try_alloc(bytes);
    if (ptr) {
        memset(ptr, 0, bytes);
    }
    return ptr;
}

static void *rm_realloc(void *ptr, size_t bytes)
{
    return mem_realloc(ptr, bytes);
}

static void *rm_try_realloc(void *ptr, size_t bytes)
{
    return mem_try_realloc(ptr, bytes);
}

static void rm_free(void *ptr)
{
    mem_free(ptr);
}

static char *rm_strdup(const char *text)
{
    return mem_dup(text, strlen(text));
}

static size_t rm_malloc_size(void *ptr)
{
    return ptr ? mem_usable_size(ptr) : 0;
}

static size_t rm_malloc_size_string(RedisModuleString *str)
{
    return text_memory_bytes(str);
}

/* Of maxmemory; 0 without one. */
static float rm_get_used_memory_ratio(void)
{
    int64_t limit = evict_limit_bytes;
    return limit > 0 ? (float)((double)evict_counted_bytes() / (double)limit) : 0.0F;
}

const struct api_function memory_functions[] = {
    API(Alloc, rm_alloc),
    API(TryAlloc, rm_try_alloc),
    API(Calloc, rm_calloc),
    API(TryCalloc, rm_try_calloc),
    API(Realloc, rm_realloc),
    API(TryRealloc, rm_try_realloc),
    API(Free, rm_free),
    API(Strdup, rm_strdup),
    API(MallocSize, rm_malloc_size),
    API(MallocUsableSize, rm_malloc_size),
    API(MallocSizeString, rm_malloc_size_string),
    API(GetUsedMemoryRatio, rm_get_used_memory_ratio),
    {NULL, NULL},
};
