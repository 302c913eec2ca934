/* The cluster, of which there is none: what a server without cluster mode answers. */
#include "base/crc.h"
#include "keyspace/lock.h"
#include "module/context.h"
#include "module/text.h"

#include <string.h>

static int rm_send_cluster_message(RedisModuleCtx *ctx, const char *target, uint8_t type,
                                   const char *message, uint32_t len)
{
    (void)ctx, (void)target, (void)type, (void)message, (void)len;
    return REDISMODULE_ERR;
}

/* Nobody can send any. */
static void rm_register_receiver(RedisModuleCtx *ctx, uint8_t type,
                                 RedisModuleClusterMessageReceiver callback)
{
    (void)ctx, (void)type, (void)callback;
}

static int rm_get_node_info(RedisModuleCtx *ctx, const char *id, char *ip, char *master_id,
                            int *port, int *flags)
{
    (void)ctx, (void)id, (void)ip, (void)master_id, (void)port, (void)flags;
    return REDISMODULE_ERR;
}

static char **rm_get_nodes_list(RedisModuleCtx *ctx, size_t *count)
{
    (void)ctx;
    *count = 0;
    return NULL;
}

static void rm_free_nodes_list(char **ids)
{
    (void)ids;
}

static const char *rm_get_my_id(void)
{
    return NULL;
}

static size_t rm_get_size(void)
{
    return 0;
}

static void rm_set_flags(RedisModuleCtx *ctx, uint64_t flags)
{
    (void)ctx, (void)flags;
}

/* ---- slots: a matter of names alone ---- */

#define SLOTS 16384
/* Digits of base 62 that name every slot. Two leave 12874 of them without a name. */
#define TAG_DIGITS 3

/* What of a key decides: the part between its first '{' and the next '}', if there is any. */
static struct slice hashed_part(struct slice key)
{
    const char *open = memchr(key.ptr, '{', key.len);
    if (!open) {
        return key;
    }
    size_t left = key.len - (size_t)(open + 1 - key.ptr);
    const char *close = memchr(open + 1, '}', left);
    return close && close > open + 1 ? slice_of(open + 1, (size_t)(close - open) - 1) : key;
}

static unsigned slot_of(struct slice key)
{
    struct slice part = hashed_part(key);
    return crc16(part.ptr, part.len) % SLOTS;
}

static unsigned rm_key_slot(RedisModuleString *key)
{
    return slot_of(text_slice(key));
}

/* The shortest name, the first in the order of the digits below, of a slot. */
static bool find_name(unsigned slot, unsigned digits, char *name)
{
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const unsigned base = sizeof(alphabet) - 1;
    unsigned combinations = 1;
    for (unsigned i = 0; i < digits; i++) {
        combinations *= base;
    }
    for (unsigned n = 0; n < combinations; n++) {
        for (unsigned i = digits, rest = n; i > 0; i--, rest /= base) {
            name[i - 1] = alphabet[rest % base];
        }
        if (slot_of(slice_of(name, digits)) == slot) {
            name[digits] = '\0';
            return true;
        }
    }
    return false;
}

/* A key's name that belongs to the slot, the same each time; found when it is first asked for.
 * State: keyspace. */
static const char *rm_canonical_name(unsigned slot)
{
    static char names[SLOTS][TAG_DIGITS + 1];
    keyspace_assert_exclusive();
    if (slot >= SLOTS) {
        return NULL;
    }
    for (unsigned digits = 1; names[slot][0] == '\0' && digits <= TAG_DIGITS; digits++) {
        if (!find_name(slot, digits, names[slot])) {
            names[slot][0] = '\0';
        }
    }
    return names[slot][0] ? names[slot] : NULL;
}

const struct api_function cluster_functions[] = {
    API(SendClusterMessage, rm_send_cluster_message),
    API(RegisterClusterMessageReceiver, rm_register_receiver),
    API(GetClusterNodeInfo, rm_get_node_info),
    API(GetClusterNodesList, rm_get_nodes_list),
    API(FreeClusterNodesList, rm_free_nodes_list),
    API(GetMyClusterID, rm_get_my_id),
    API(GetClusterSize, rm_get_size),
    API(SetClusterFlags, rm_set_flags),
    API(ClusterKeySlot, rm_key_slot),
    API(ClusterCanonicalKeyNameInSlot, rm_canonical_name),
    {NULL, NULL},
};
