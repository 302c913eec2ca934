/* See type.h. */
#include "value/type.h"

#include "value/hash.h"
#include "value/set.h"
#include "value/job.h"
#include "value/list.h"
#include "value/module.h"
#include "value/stream.h"
#include "value/nested.h"
#include "value/string.h"
#include "value/zset.h"

const struct value_ops *const value_ops_of[VALUE_TYPE_COUNT] = {
    [VALUE_STRING] = &string_ops, [VALUE_HASH] = &hash_ops, [VALUE_SET] = &set_ops,
    [VALUE_ZSET] = &zset_ops,     [VALUE_LIST] = &list_ops, [VALUE_STREAM] = &stream_ops,
    [VALUE_NESTED] = &nested_ops, [VALUE_CRON] = &job_ops,  [VALUE_MODULE] = &module_value_ops,
};

const char *value_type_name(const struct entry *e)
{
    const char *name = value_ops_of[entry_type(e)]->name;
    return name ? name : module_value_kind(e)->name;
}
