/* The cluster, of which there is none: what a server without cluster mode answers. */
#include "module/context.h"

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

const struct api_function cluster_functions[] = {
    API(SendClusterMessage, rm_send_cluster_message),
    API(RegisterClusterMessageReceiver, rm_register_receiver),
    API(GetClusterNodeInfo, rm_get_node_info),
    API(GetClusterNodesList, rm_get_nodes_list),
    API(FreeClusterNodesList, rm_free_nodes_list),
    API(GetMyClusterID, rm_get_my_id),
    API(GetClusterSize, rm_get_size),
    API(SetClusterFlags, rm_set_flags),
    {NULL, NULL},
};
