/* The functions that a server offers to modules, by subject: F(what it returns, name, its
 * parameters) for each. keydbmodule.h makes variables of modules out of them, the server a table.
 * Each section is a file of src/module. */
#ifndef KEYDBMODULE_FUNCTIONS_H
#define KEYDBMODULE_FUNCTIONS_H

#define KEYDBMODULE_FUNCTIONS(F)                                                                   \
    /* Contexts and the module itself */                                                           \
    F(int, GetApi, (const char *, void *))                                                         \
    F(void, SetModuleAttribs, (RedisModuleCtx * ctx, const char *name, int ver, int apiver))       \
    F(int, IsModuleNameBusy, (const char *name))                                                   \
    F(void, SetModuleOptions, (RedisModuleCtx * ctx, int options))                                 \
    F(int, GetModuleOptionsAll, (void))                                                            \
    F(int, GetServerVersion, (void))                                                               \
    F(void, AutoMemory, (RedisModuleCtx * ctx))                                                    \
    F(void *, PoolAlloc, (RedisModuleCtx * ctx, size_t bytes))                                     \
    F(int, GetSelectedDb, (RedisModuleCtx * ctx))                                                  \
    F(int, SelectDb, (RedisModuleCtx * ctx, int newid))                                            \
    F(unsigned long long, GetClientId, (RedisModuleCtx * ctx))                                     \
    F(const char *, GetCurrentCommandName, (RedisModuleCtx * ctx))                                 \
    F(void, Yield, (RedisModuleCtx * ctx, int flags, const char *busy_reply))                      \
    /* How the server is, and who calls */                                                         \
    F(int, GetContextFlags, (RedisModuleCtx * ctx))                                                \
    F(int, GetContextFlagsAll, (void))                                                             \
    F(int, AvoidReplicaTraffic, (void))                                                            \
    /* Memory */                                                                                   \
    F(void *, Alloc, (size_t bytes))                                                               \
    F(void *, TryAlloc, (size_t bytes))                                                            \
    F(void *, Calloc, (size_t nmemb, size_t size))                                                 \
    F(void *, TryCalloc, (size_t nmemb, size_t size))                                              \
    F(void *, Realloc, (void *ptr, size_t bytes))                                                  \
    F(void *, TryRealloc, (void *ptr, size_t bytes))                                               \
    F(void, Free, (void *ptr))                                                                     \
    F(char *, Strdup, (const char *str))                                                           \
    F(size_t, MallocSize, (void *ptr))                                                             \
    F(size_t, MallocUsableSize, (void *ptr))                                                       \
    F(size_t, MallocSizeString, (RedisModuleString * str))                                         \
    F(float, GetUsedMemoryRatio, (void))                                                           \
    /* Clocks, chance, the log */                                                                  \
    F(mstime_t, Milliseconds, (void))                                                              \
    F(ustime_t, Microseconds, (void))                                                              \
    F(ustime_t, CachedMicroseconds, (void))                                                        \
    F(uint64_t, MonotonicMicroseconds, (void))                                                     \
    F(void, GetRandomBytes, (unsigned char *dst, size_t len))                                      \
    F(void, GetRandomHexChars, (char *dst, size_t len))                                            \
    F(void, Log,                                                                                   \
      (RedisModuleCtx * ctx, const char *level, const char *fmt, ...) KEYDBMODULE_PRINTF(3, 4))    \
    F(void, LogIOError,                                                                            \
      (RedisModuleIO * io, const char *levelstr, const char *fmt, ...) KEYDBMODULE_PRINTF(3, 4))   \
    F(void, _Assert, (const char *estr, const char *file, int line))                               \
    F(void, LatencyAddSample, (const char *event, mstime_t latency))                               \
    /* Strings: life and content */                                                                \
    F(RedisModuleString *, CreateString, (RedisModuleCtx * ctx, const char *ptr, size_t len))      \
    F(RedisModuleString *, CreateStringFromString,                                                 \
      (RedisModuleCtx * ctx, const RedisModuleString *str))                                        \
    F(RedisModuleString *, CreateStringPrintf,                                                     \
      (RedisModuleCtx * ctx, const char *fmt, ...) KEYDBMODULE_PRINTF(2, 3))                       \
    F(void, FreeString, (RedisModuleCtx * ctx, RedisModuleString * str))                           \
    F(void, RetainString, (RedisModuleCtx * ctx, RedisModuleString * str))                         \
    F(RedisModuleString *, HoldString, (RedisModuleCtx * ctx, RedisModuleString * str))            \
    F(const char *, StringPtrLen, (const RedisModuleString *str, size_t *len))                     \
    F(int, StringCompare, (const RedisModuleString *a, const RedisModuleString *b))                \
    F(int, StringAppendBuffer,                                                                     \
      (RedisModuleCtx * ctx, RedisModuleString * str, const char *buf, size_t len))                \
    F(void, TrimStringAllocation, (RedisModuleString * str))                                       \
    /* Strings: numbers and ids as text */                                                         \
    F(RedisModuleString *, CreateStringFromLongLong, (RedisModuleCtx * ctx, long long ll))         \
    F(RedisModuleString *, CreateStringFromULongLong,                                              \
      (RedisModuleCtx * ctx, unsigned long long ull))                                              \
    F(RedisModuleString *, CreateStringFromDouble, (RedisModuleCtx * ctx, double d))               \
    F(RedisModuleString *, CreateStringFromLongDouble,                                             \
      (RedisModuleCtx * ctx, long double ld, int humanfriendly))                                   \
    F(RedisModuleString *, CreateStringFromStreamID,                                               \
      (RedisModuleCtx * ctx, const RedisModuleStreamID *id))                                       \
    F(int, StringToLongLong, (const RedisModuleString *str, long long *ll))                        \
    F(int, StringToULongLong, (const RedisModuleString *str, unsigned long long *ull))             \
    F(int, StringToDouble, (const RedisModuleString *str, double *d))                              \
    F(int, StringToLongDouble, (const RedisModuleString *str, long double *d))                     \
    F(int, StringToStreamID, (const RedisModuleString *str, RedisModuleStreamID *id))              \
    /* Replies */                                                                                  \
    F(int, WrongArity, (RedisModuleCtx * ctx))                                                     \
    F(int, ReplyWithLongLong, (RedisModuleCtx * ctx, long long ll))                                \
    F(int, ReplyWithError, (RedisModuleCtx * ctx, const char *err))                                \
    F(int, ReplyWithErrorFormat,                                                                   \
      (RedisModuleCtx * ctx, const char *fmt, ...) KEYDBMODULE_PRINTF(2, 3))                       \
    F(int, ReplyWithSimpleString, (RedisModuleCtx * ctx, const char *msg))                         \
    F(int, ReplyWithStringBuffer, (RedisModuleCtx * ctx, const char *buf, size_t len))             \
    F(int, ReplyWithCString, (RedisModuleCtx * ctx, const char *buf))                              \
    F(int, ReplyWithString, (RedisModuleCtx * ctx, RedisModuleString * str))                       \
    F(int, ReplyWithEmptyString, (RedisModuleCtx * ctx))                                           \
    F(int, ReplyWithVerbatimString, (RedisModuleCtx * ctx, const char *buf, size_t len))           \
    F(int, ReplyWithVerbatimStringType,                                                            \
      (RedisModuleCtx * ctx, const char *buf, size_t len, const char *ext))                        \
    F(int, ReplyWithNull, (RedisModuleCtx * ctx))                                                  \
    F(int, ReplyWithBool, (RedisModuleCtx * ctx, int b))                                           \
    F(int, ReplyWithDouble, (RedisModuleCtx * ctx, double d))                                      \
    F(int, ReplyWithLongDouble, (RedisModuleCtx * ctx, long double d))                             \
    F(int, ReplyWithBigNumber, (RedisModuleCtx * ctx, const char *bignum, size_t len))             \
    F(int, ReplyWithArray, (RedisModuleCtx * ctx, long len))                                       \
    F(int, ReplyWithMap, (RedisModuleCtx * ctx, long len))                                         \
    F(int, ReplyWithSet, (RedisModuleCtx * ctx, long len))                                         \
    F(int, ReplyWithAttribute, (RedisModuleCtx * ctx, long len))                                   \
    F(int, ReplyWithNullArray, (RedisModuleCtx * ctx))                                             \
    F(int, ReplyWithEmptyArray, (RedisModuleCtx * ctx))                                            \
    F(void, ReplySetArrayLength, (RedisModuleCtx * ctx, long len))                                 \
    F(void, ReplySetMapLength, (RedisModuleCtx * ctx, long len))                                   \
    F(void, ReplySetSetLength, (RedisModuleCtx * ctx, long len))                                   \
    F(void, ReplySetAttributeLength, (RedisModuleCtx * ctx, long len))                             \
    F(void, ReplySetPushLength, (RedisModuleCtx * ctx, long len))                                  \
    F(int, ReplyWithCallReply, (RedisModuleCtx * ctx, RedisModuleCallReply * reply))               \
    /* Commands */                                                                                 \
    F(int, CreateCommand,                                                                          \
      (RedisModuleCtx * ctx, const char *name, RedisModuleCmdFunc cmdfunc, const char *strflags,   \
       int firstkey, int lastkey, int keystep))                                                    \
    F(RedisModuleCommand *, GetCommand, (RedisModuleCtx * ctx, const char *name))                  \
    F(int, CreateSubcommand,                                                                       \
      (RedisModuleCommand * parent, const char *name, RedisModuleCmdFunc cmdfunc,                  \
       const char *strflags, int firstkey, int lastkey, int keystep))                              \
    F(int, SetCommandACLCategories, (RedisModuleCommand * command, const char *ctgrsflags))        \
    F(int, AddACLCategory, (RedisModuleCtx * ctx, const char *name))                               \
    /* What is said of commands */                                                                 \
    F(int, SetCommandInfo, (RedisModuleCommand * command, const RedisModuleCommandInfo *info))     \
    /* Keys and channels of commands */                                                            \
    F(int, IsKeysPositionRequest, (RedisModuleCtx * ctx))                                          \
    F(void, KeyAtPos, (RedisModuleCtx * ctx, int pos))                                             \
    F(void, KeyAtPosWithFlags, (RedisModuleCtx * ctx, int pos, int flags))                         \
    F(int, IsChannelsPositionRequest, (RedisModuleCtx * ctx))                                      \
    F(void, ChannelAtPosWithFlags, (RedisModuleCtx * ctx, int pos, int flags))                     \
    F(int *, GetCommandKeys,                                                                       \
      (RedisModuleCtx * ctx, RedisModuleString * *argv, int argc, int *num_keys))                  \
    F(int *, GetCommandKeysWithFlags,                                                              \
      (RedisModuleCtx * ctx, RedisModuleString * *argv, int argc, int *num_keys, int **out_flags)) \
    /* Calls of commands */                                                                        \
    F(RedisModuleCallReply *, Call,                                                                \
      (RedisModuleCtx * ctx, const char *cmdname, const char *fmt, ...))                           \
    F(void, CallReplyPromiseSetUnblockHandler,                                                     \
      (RedisModuleCallReply * reply, RedisModuleOnUnblocked on_unblock, void *private_data))       \
    F(int, CallReplyPromiseAbort, (RedisModuleCallReply * reply, void **private_data))             \
    /* Replies of calls */                                                                         \
    F(void, FreeCallReply, (RedisModuleCallReply * reply))                                         \
    F(int, CallReplyType, (RedisModuleCallReply * reply))                                          \
    F(const char *, CallReplyProto, (RedisModuleCallReply * reply, size_t * len))                  \
    F(size_t, CallReplyLength, (RedisModuleCallReply * reply))                                     \
    F(long long, CallReplyInteger, (RedisModuleCallReply * reply))                                 \
    F(double, CallReplyDouble, (RedisModuleCallReply * reply))                                     \
    F(int, CallReplyBool, (RedisModuleCallReply * reply))                                          \
    F(const char *, CallReplyBigNumber, (RedisModuleCallReply * reply, size_t * len))              \
    F(const char *, CallReplyVerbatim,                                                             \
      (RedisModuleCallReply * reply, size_t * len, const char **format))                           \
    F(const char *, CallReplyStringPtr, (RedisModuleCallReply * reply, size_t * len))              \
    F(RedisModuleString *, CreateStringFromCallReply, (RedisModuleCallReply * reply))              \
    F(RedisModuleCallReply *, CallReplyArrayElement, (RedisModuleCallReply * reply, size_t idx))   \
    F(RedisModuleCallReply *, CallReplySetElement, (RedisModuleCallReply * reply, size_t idx))     \
    F(int, CallReplyMapElement,                                                                    \
      (RedisModuleCallReply * reply, size_t idx, RedisModuleCallReply * *key,                      \
       RedisModuleCallReply * *val))                                                               \
    F(RedisModuleCallReply *, CallReplyAttribute, (RedisModuleCallReply * reply))                  \
    F(int, CallReplyAttributeElement,                                                              \
      (RedisModuleCallReply * reply, size_t idx, RedisModuleCallReply * *key,                      \
       RedisModuleCallReply * *val))                                                               \
    /* What logs and replicas are told */                                                          \
    F(int, Replicate, (RedisModuleCtx * ctx, const char *cmdname, const char *fmt, ...))           \
    F(int, ReplicateVerbatim, (RedisModuleCtx * ctx))                                              \
    /* Keys */                                                                                     \
    F(RedisModuleKey *, OpenKey, (RedisModuleCtx * ctx, RedisModuleString * keyname, int mode))    \
    F(int, GetOpenKeyModesAll, (void))                                                             \
    F(void, CloseKey, (RedisModuleKey * kp))                                                       \
    F(int, KeyExists, (RedisModuleCtx * ctx, RedisModuleString * keyname))                         \
    F(int, KeyType, (RedisModuleKey * kp))                                                         \
    F(size_t, ValueLength, (RedisModuleKey * kp))                                                  \
    F(int, DeleteKey, (RedisModuleKey * key))                                                      \
    F(int, UnlinkKey, (RedisModuleKey * key))                                                      \
    F(int, SignalModifiedKey, (RedisModuleCtx * ctx, RedisModuleString * keyname))                 \
    F(const RedisModuleString *, GetKeyNameFromModuleKey, (RedisModuleKey * key))                  \
    F(int, GetDbIdFromModuleKey, (RedisModuleKey * key))                                           \
    /* Keys: expiry and use */                                                                     \
    F(mstime_t, GetExpire, (RedisModuleKey * key))                                                 \
    F(int, SetExpire, (RedisModuleKey * key, mstime_t expire))                                     \
    F(mstime_t, GetAbsExpire, (RedisModuleKey * key))                                              \
    F(int, SetAbsExpire, (RedisModuleKey * key, mstime_t expire))                                  \
    F(int, SetLRU, (RedisModuleKey * key, mstime_t lru_idle))                                      \
    F(int, GetLRU, (RedisModuleKey * key, mstime_t * lru_idle))                                    \
    F(int, SetLFU, (RedisModuleKey * key, long long lfu_freq))                                     \
    F(int, GetLFU, (RedisModuleKey * key, long long *lfu_freq))                                    \
    /* The data set */                                                                             \
    F(unsigned long long, DbSize, (RedisModuleCtx * ctx))                                          \
    F(RedisModuleString *, RandomKey, (RedisModuleCtx * ctx))                                      \
    F(void, ResetDataset, (int restart_aof, int async))                                            \
    /* Values: strings */                                                                          \
    F(int, StringSet, (RedisModuleKey * key, RedisModuleString * str))                             \
    F(char *, StringDMA, (RedisModuleKey * key, size_t * len, int mode))                           \
    F(int, StringTruncate, (RedisModuleKey * key, size_t newlen))                                  \
    /* Values: lists */                                                                            \
    F(int, ListPush, (RedisModuleKey * kp, int where, RedisModuleString *ele))                     \
    F(RedisModuleString *, ListPop, (RedisModuleKey * key, int where))                             \
    F(RedisModuleString *, ListGet, (RedisModuleKey * key, long index))                            \
    F(int, ListSet, (RedisModuleKey * key, long index, RedisModuleString *value))                  \
    F(int, ListInsert, (RedisModuleKey * key, long index, RedisModuleString *value))               \
    F(int, ListDelete, (RedisModuleKey * key, long index))                                         \
    /* Values: sorted sets */                                                                      \
    F(int, ZsetAdd, (RedisModuleKey * key, double score, RedisModuleString *ele, int *flagsptr))   \
    F(int, ZsetIncrby,                                                                             \
      (RedisModuleKey * key, double score, RedisModuleString *ele, int *flagsptr,                  \
       double *newscore))                                                                          \
    F(int, ZsetScore, (RedisModuleKey * key, RedisModuleString * ele, double *score))              \
    F(int, ZsetRem, (RedisModuleKey * key, RedisModuleString * ele, int *deleted))                 \
    /* Values: ranges of sorted sets */                                                            \
    F(void, ZsetRangeStop, (RedisModuleKey * key))                                                 \
    F(int, ZsetFirstInScoreRange,                                                                  \
      (RedisModuleKey * key, double min, double max, int minex, int maxex))                        \
    F(int, ZsetLastInScoreRange,                                                                   \
      (RedisModuleKey * key, double min, double max, int minex, int maxex))                        \
    F(int, ZsetFirstInLexRange,                                                                    \
      (RedisModuleKey * key, RedisModuleString * min, RedisModuleString * max))                    \
    F(int, ZsetLastInLexRange,                                                                     \
      (RedisModuleKey * key, RedisModuleString * min, RedisModuleString * max))                    \
    F(RedisModuleString *, ZsetRangeCurrentElement, (RedisModuleKey * key, double *score))         \
    F(int, ZsetRangeNext, (RedisModuleKey * key))                                                  \
    F(int, ZsetRangePrev, (RedisModuleKey * key))                                                  \
    F(int, ZsetRangeEndReached, (RedisModuleKey * key))                                            \
    /* Values: hashes */                                                                           \
    F(int, HashSet, (RedisModuleKey * key, int flags, ...))                                        \
    F(int, HashGet, (RedisModuleKey * key, int flags, ...))                                        \
    /* Values: streams */                                                                          \
    F(int, StreamAdd,                                                                              \
      (RedisModuleKey * key, int flags, RedisModuleStreamID *id, RedisModuleString **argv,         \
       int64_t numfields))                                                                         \
    F(int, StreamDelete, (RedisModuleKey * key, RedisModuleStreamID * id))                         \
    F(int, StreamIteratorStart,                                                                    \
      (RedisModuleKey * key, int flags, RedisModuleStreamID *startid, RedisModuleStreamID *endid)) \
    F(int, StreamIteratorStop, (RedisModuleKey * key))                                             \
    F(int, StreamIteratorNextID,                                                                   \
      (RedisModuleKey * key, RedisModuleStreamID * id, long *numfields))                           \
    F(int, StreamIteratorNextField,                                                                \
      (RedisModuleKey * key, RedisModuleString * *field_ptr, RedisModuleString * *value_ptr))      \
    F(int, StreamIteratorDelete, (RedisModuleKey * key))                                           \
    F(long long, StreamTrimByLength, (RedisModuleKey * key, int flags, long long length))          \
    F(long long, StreamTrimByID, (RedisModuleKey * key, int flags, RedisModuleStreamID *id))       \
    /* Types of modules */                                                                         \
    F(RedisModuleType *, CreateDataType,                                                           \
      (RedisModuleCtx * ctx, const char *name, int encver, RedisModuleTypeMethods *typemethods))   \
    F(int, ModuleTypeSetValue, (RedisModuleKey * key, RedisModuleType * mt, void *value))          \
    F(int, ModuleTypeReplaceValue,                                                                 \
      (RedisModuleKey * key, RedisModuleType * mt, void *new_value, void **old_value))             \
    F(RedisModuleType *, ModuleTypeGetType, (RedisModuleKey * key))                                \
    F(void *, ModuleTypeGetValue, (RedisModuleKey * key))                                          \
    F(int, GetTypeMethodVersion, (void))                                                           \
    F(void *, LoadDataTypeFromString, (const RedisModuleString *str, const RedisModuleType *mt))   \
    F(void *, LoadDataTypeFromStringEncver,                                                        \
      (const RedisModuleString *str, const RedisModuleType *mt, int encver))                       \
    F(RedisModuleString *, SaveDataTypeToString,                                                   \
      (RedisModuleCtx * ctx, void *data, const RedisModuleType *mt))                               \
    F(int, GetDbIdFromOptCtx, (RedisModuleKeyOptCtx * ctx))                                        \
    F(int, GetToDbIdFromOptCtx, (RedisModuleKeyOptCtx * ctx))                                      \
    F(const RedisModuleString *, GetKeyNameFromOptCtx, (RedisModuleKeyOptCtx * ctx))               \
    F(const RedisModuleString *, GetToKeyNameFromOptCtx, (RedisModuleKeyOptCtx * ctx))             \
    /* Values of modules in files */                                                               \
    F(void, SaveUnsigned, (RedisModuleIO * io, uint64_t value))                                    \
    F(uint64_t, LoadUnsigned, (RedisModuleIO * io))                                                \
    F(void, SaveSigned, (RedisModuleIO * io, int64_t value))                                       \
    F(int64_t, LoadSigned, (RedisModuleIO * io))                                                   \
    F(void, SaveString, (RedisModuleIO * io, RedisModuleString * s))                               \
    F(void, SaveStringBuffer, (RedisModuleIO * io, const char *str, size_t len))                   \
    F(RedisModuleString *, LoadString, (RedisModuleIO * io))                                       \
    F(char *, LoadStringBuffer, (RedisModuleIO * io, size_t * lenptr))                             \
    F(void, SaveDouble, (RedisModuleIO * io, double value))                                        \
    F(double, LoadDouble, (RedisModuleIO * io))                                                    \
    F(void, SaveFloat, (RedisModuleIO * io, float value))                                          \
    F(float, LoadFloat, (RedisModuleIO * io))                                                      \
    F(void, SaveLongDouble, (RedisModuleIO * io, long double value))                               \
    F(long double, LoadLongDouble, (RedisModuleIO * io))                                           \
    F(void, EmitAOF, (RedisModuleIO * io, const char *cmdname, const char *fmt, ...))              \
    F(int, IsIOError, (RedisModuleIO * io))                                                        \
    F(RedisModuleCtx *, GetContextFromIO, (RedisModuleIO * io))                                    \
    F(const RedisModuleString *, GetKeyNameFromIO, (RedisModuleIO * io))                           \
    F(int, GetDbIdFromIO, (RedisModuleIO * io))                                                    \
    /* Digests */                                                                                  \
    F(void, DigestAddStringBuffer, (RedisModuleDigest * md, const char *ele, size_t len))          \
    F(void, DigestAddLongLong, (RedisModuleDigest * md, long long ele))                            \
    F(void, DigestEndSequence, (RedisModuleDigest * md))                                           \
    F(int, GetDbIdFromDigest, (RedisModuleDigest * dig))                                           \
    F(const RedisModuleString *, GetKeyNameFromDigest, (RedisModuleDigest * dig))                  \
    /* Walks */                                                                                    \
    F(RedisModuleScanCursor *, ScanCursorCreate, (void))                                           \
    F(void, ScanCursorRestart, (RedisModuleScanCursor * cursor))                                   \
    F(void, ScanCursorDestroy, (RedisModuleScanCursor * cursor))                                   \
    F(int, Scan,                                                                                   \
      (RedisModuleCtx * ctx, RedisModuleScanCursor * cursor, RedisModuleScanCB fn,                 \
       void *privdata))                                                                            \
    F(int, ScanKey,                                                                                \
      (RedisModuleKey * key, RedisModuleScanCursor * cursor, RedisModuleScanKeyCB fn,              \
       void *privdata))                                                                            \
    /* Dictionaries */                                                                             \
    F(RedisModuleDict *, CreateDict, (RedisModuleCtx * ctx))                                       \
    F(void, FreeDict, (RedisModuleCtx * ctx, RedisModuleDict * d))                                 \
    F(uint64_t, DictSize, (RedisModuleDict * d))                                                   \
    F(size_t, MallocSizeDict, (RedisModuleDict * dict))                                            \
    F(int, DictSetC, (RedisModuleDict * d, void *key, size_t keylen, void *ptr))                   \
    F(int, DictReplaceC, (RedisModuleDict * d, void *key, size_t keylen, void *ptr))               \
    F(int, DictSet, (RedisModuleDict * d, RedisModuleString * key, void *ptr))                     \
    F(int, DictReplace, (RedisModuleDict * d, RedisModuleString * key, void *ptr))                 \
    F(void *, DictGetC, (RedisModuleDict * d, void *key, size_t keylen, int *nokey))               \
    F(void *, DictGet, (RedisModuleDict * d, RedisModuleString * key, int *nokey))                 \
    F(int, DictDelC, (RedisModuleDict * d, void *key, size_t keylen, void *oldval))                \
    F(int, DictDel, (RedisModuleDict * d, RedisModuleString * key, void *oldval))                  \
    F(RedisModuleDictIter *, DictIteratorStartC,                                                   \
      (RedisModuleDict * d, const char *op, void *key, size_t keylen))                             \
    F(RedisModuleDictIter *, DictIteratorStart,                                                    \
      (RedisModuleDict * d, const char *op, RedisModuleString *key))                               \
    F(void, DictIteratorStop, (RedisModuleDictIter * di))                                          \
    F(int, DictIteratorReseekC,                                                                    \
      (RedisModuleDictIter * di, const char *op, void *key, size_t keylen))                        \
    F(int, DictIteratorReseek, (RedisModuleDictIter * di, const char *op, RedisModuleString *key)) \
    F(void *, DictNextC, (RedisModuleDictIter * di, size_t * keylen, void **dataptr))              \
    F(void *, DictPrevC, (RedisModuleDictIter * di, size_t * keylen, void **dataptr))              \
    F(RedisModuleString *, DictNext,                                                               \
      (RedisModuleCtx * ctx, RedisModuleDictIter * di, void **dataptr))                            \
    F(RedisModuleString *, DictPrev,                                                               \
      (RedisModuleCtx * ctx, RedisModuleDictIter * di, void **dataptr))                            \
    F(int, DictCompareC, (RedisModuleDictIter * di, const char *op, void *key, size_t keylen))     \
    F(int, DictCompare, (RedisModuleDictIter * di, const char *op, RedisModuleString *key))        \
    /* Blocked clients */                                                                          \
    F(RedisModuleBlockedClient *, BlockClient,                                                     \
      (RedisModuleCtx * ctx, RedisModuleCmdFunc reply_callback,                                    \
       RedisModuleCmdFunc timeout_callback, void (*free_privdata)(RedisModuleCtx *, void *),       \
       long long timeout_ms))                                                                      \
    F(RedisModuleBlockedClient *, BlockClientOnKeys,                                               \
      (RedisModuleCtx * ctx, RedisModuleCmdFunc reply_callback,                                    \
       RedisModuleCmdFunc timeout_callback, void (*free_privdata)(RedisModuleCtx *, void *),       \
       long long timeout_ms, RedisModuleString **keys, int numkeys, void *privdata))               \
    F(RedisModuleBlockedClient *, BlockClientOnKeysWithFlags,                                      \
      (RedisModuleCtx * ctx, RedisModuleCmdFunc reply_callback,                                    \
       RedisModuleCmdFunc timeout_callback, void (*free_privdata)(RedisModuleCtx *, void *),       \
       long long timeout_ms, RedisModuleString **keys, int numkeys, void *privdata, int flags))    \
    F(void *, BlockClientGetPrivateData, (RedisModuleBlockedClient * blocked_client))              \
    F(void, BlockClientSetPrivateData,                                                             \
      (RedisModuleBlockedClient * blocked_client, void *private_data))                             \
    F(void, SignalKeyAsReady, (RedisModuleCtx * ctx, RedisModuleString * key))                     \
    F(RedisModuleString *, GetBlockedClientReadyKey, (RedisModuleCtx * ctx))                       \
    F(int, UnblockClient, (RedisModuleBlockedClient * bc, void *privdata))                         \
    F(int, IsBlockedReplyRequest, (RedisModuleCtx * ctx))                                          \
    F(int, IsBlockedTimeoutRequest, (RedisModuleCtx * ctx))                                        \
    F(void *, GetBlockedClientPrivateData, (RedisModuleCtx * ctx))                                 \
    F(RedisModuleBlockedClient *, GetBlockedClientHandle, (RedisModuleCtx * ctx))                  \
    F(int, AbortBlock, (RedisModuleBlockedClient * bc))                                            \
    F(int, BlockedClientMeasureTimeStart, (RedisModuleBlockedClient * bc))                         \
    F(int, BlockedClientMeasureTimeEnd, (RedisModuleBlockedClient * bc))                           \
    F(int, BlockedClientDisconnected, (RedisModuleCtx * ctx))                                      \
    F(void, SetDisconnectCallback,                                                                 \
      (RedisModuleBlockedClient * bc, RedisModuleDisconnectFunc callback))                         \
    /* Threads of modules */                                                                       \
    F(RedisModuleCtx *, GetThreadSafeContext, (RedisModuleBlockedClient * bc))                     \
    F(RedisModuleCtx *, GetDetachedThreadSafeContext, (RedisModuleCtx * ctx))                      \
    F(void, FreeThreadSafeContext, (RedisModuleCtx * ctx))                                         \
    F(void, ThreadSafeContextLock, (RedisModuleCtx * ctx))                                         \
    F(int, ThreadSafeContextTryLock, (RedisModuleCtx * ctx))                                       \
    F(void, ThreadSafeContextUnlock, (RedisModuleCtx * ctx))                                       \
    /* Timers */                                                                                   \
    F(RedisModuleTimerID, CreateTimer,                                                             \
      (RedisModuleCtx * ctx, mstime_t period, RedisModuleTimerProc callback, void *data))          \
    F(int, StopTimer, (RedisModuleCtx * ctx, RedisModuleTimerID id, void **data))                  \
    F(int, GetTimerInfo,                                                                           \
      (RedisModuleCtx * ctx, RedisModuleTimerID id, uint64_t * remaining, void **data))            \
    /* The event loop */                                                                           \
    F(int, EventLoopAdd, (int fd, int mask, RedisModuleEventLoopFunc func, void *user_data))       \
    F(int, EventLoopDel, (int fd, int mask))                                                       \
    F(int, EventLoopAddOneShot, (RedisModuleEventLoopOneShotFunc func, void *user_data))           \
    /* Events of keys */                                                                           \
    F(int, SubscribeToKeyspaceEvents,                                                              \
      (RedisModuleCtx * ctx, int types, RedisModuleNotificationFunc cb))                           \
    F(int, AddPostNotificationJob,                                                                 \
      (RedisModuleCtx * ctx, RedisModulePostNotificationJobFunc callback, void *pd,                \
       void (*free_pd)(void *)))                                                                   \
    F(int, NotifyKeyspaceEvent,                                                                    \
      (RedisModuleCtx * ctx, int type, const char *event, RedisModuleString *key))                 \
    F(int, GetNotifyKeyspaceEvents, (void))                                                        \
    F(int, GetKeyspaceNotificationFlagsAll, (void))                                                \
    /* Events of the server */                                                                     \
    F(int, SubscribeToServerEvent,                                                                 \
      (RedisModuleCtx * ctx, RedisModuleEvent event, RedisModuleEventCallback callback))           \
    F(int, IsSubEventSupported, (RedisModuleEvent event, uint64_t subevent))                       \
    /* INFO */                                                                                     \
    F(int, RegisterInfoFunc, (RedisModuleCtx * ctx, RedisModuleInfoFunc cb))                       \
    F(int, InfoAddSection, (RedisModuleInfoCtx * ctx, const char *name))                           \
    F(int, InfoBeginDictField, (RedisModuleInfoCtx * ctx, const char *name))                       \
    F(int, InfoEndDictField, (RedisModuleInfoCtx * ctx))                                           \
    F(int, InfoAddFieldString,                                                                     \
      (RedisModuleInfoCtx * ctx, const char *field, RedisModuleString *value))                     \
    F(int, InfoAddFieldCString, (RedisModuleInfoCtx * ctx, const char *field, const char *value))  \
    F(int, InfoAddFieldDouble, (RedisModuleInfoCtx * ctx, const char *field, double value))        \
    F(int, InfoAddFieldLongLong, (RedisModuleInfoCtx * ctx, const char *field, long long value))   \
    F(int, InfoAddFieldULongLong,                                                                  \
      (RedisModuleInfoCtx * ctx, const char *field, unsigned long long value))                     \
    F(RedisModuleServerInfoData *, GetServerInfo, (RedisModuleCtx * ctx, const char *section))     \
    F(void, FreeServerInfo, (RedisModuleCtx * ctx, RedisModuleServerInfoData * data))              \
    F(RedisModuleString *, ServerInfoGetField,                                                     \
      (RedisModuleCtx * ctx, RedisModuleServerInfoData * data, const char *field))                 \
    F(const char *, ServerInfoGetFieldC, (RedisModuleServerInfoData * data, const char *field))    \
    F(long long, ServerInfoGetFieldSigned,                                                         \
      (RedisModuleServerInfoData * data, const char *field, int *out_err))                         \
    F(unsigned long long, ServerInfoGetFieldUnsigned,                                              \
      (RedisModuleServerInfoData * data, const char *field, int *out_err))                         \
    F(double, ServerInfoGetFieldDouble,                                                            \
      (RedisModuleServerInfoData * data, const char *field, int *out_err))                         \
    /* Clients */                                                                                  \
    F(RedisModuleString *, GetClientUserNameById, (RedisModuleCtx * ctx, uint64_t id))             \
    F(int, GetClientInfoById, (void *ci, uint64_t id))                                             \
    F(RedisModuleString *, GetClientNameById, (RedisModuleCtx * ctx, uint64_t id))                 \
    F(int, SetClientNameById, (uint64_t id, RedisModuleString * name))                             \
    F(RedisModuleString *, GetClientCertificate, (RedisModuleCtx * ctx, uint64_t id))              \
    F(int, DeauthenticateAndCloseClient, (RedisModuleCtx * ctx, uint64_t client_id))               \
    F(int, RedactClientCommandArgument, (RedisModuleCtx * ctx, int pos))                           \
    /* Messages */                                                                                 \
    F(int, PublishMessage,                                                                         \
      (RedisModuleCtx * ctx, RedisModuleString * channel, RedisModuleString * message))            \
    F(int, PublishMessageShard,                                                                    \
      (RedisModuleCtx * ctx, RedisModuleString * channel, RedisModuleString * message))            \
    /* Users */                                                                                    \
    F(RedisModuleUser *, CreateModuleUser, (const char *name))                                     \
    F(void, FreeModuleUser, (RedisModuleUser * user))                                              \
    F(void, SetContextUser, (RedisModuleCtx * ctx, const RedisModuleUser *user))                   \
    F(int, SetModuleUserACL, (RedisModuleUser * user, const char *acl))                            \
    F(int, SetModuleUserACLString,                                                                 \
      (RedisModuleCtx * ctx, RedisModuleUser * user, const char *acl, RedisModuleString **error))  \
    F(RedisModuleString *, GetModuleUserACLString, (RedisModuleUser * user))                       \
    F(RedisModuleString *, GetCurrentUserName, (RedisModuleCtx * ctx))                             \
    F(RedisModuleUser *, GetModuleUserFromUserName, (RedisModuleString * name))                    \
    F(int, ACLCheckCommandPermissions,                                                             \
      (RedisModuleUser * user, RedisModuleString * *argv, int argc))                               \
    F(int, ACLCheckKeyPermissions, (RedisModuleUser * user, RedisModuleString * key, int flags))   \
    F(int, ACLCheckChannelPermissions,                                                             \
      (RedisModuleUser * user, RedisModuleString * ch, int literal))                               \
    F(void, ACLAddLogEntry,                                                                        \
      (RedisModuleCtx * ctx, RedisModuleUser * user, RedisModuleString * object,                   \
       RedisModuleACLLogEntryReason reason))                                                       \
    F(void, ACLAddLogEntryByUserName,                                                              \
      (RedisModuleCtx * ctx, RedisModuleString * user, RedisModuleString * object,                 \
       RedisModuleACLLogEntryReason reason))                                                       \
    /* Authentication */                                                                           \
    F(void, RegisterAuthCallback, (RedisModuleCtx * ctx, RedisModuleAuthCallback cb))              \
    F(RedisModuleBlockedClient *, BlockClientOnAuth,                                               \
      (RedisModuleCtx * ctx, RedisModuleAuthCallback reply_callback,                               \
       void (*free_privdata)(RedisModuleCtx *, void *)))                                           \
    F(int, AuthenticateClientWithACLUser,                                                          \
      (RedisModuleCtx * ctx, const char *name, size_t len, RedisModuleUserChangedFunc callback,    \
       void *privdata, uint64_t *client_id))                                                       \
    F(int, AuthenticateClientWithUser,                                                             \
      (RedisModuleCtx * ctx, RedisModuleUser * user, RedisModuleUserChangedFunc callback,          \
       void *privdata, uint64_t *client_id))                                                       \
    /* Options of modules */                                                                       \
    F(int, RegisterBoolConfig,                                                                     \
      (RedisModuleCtx * ctx, const char *name, int default_val, unsigned int flags,                \
       RedisModuleConfigGetBoolFunc getfn, RedisModuleConfigSetBoolFunc setfn,                     \
       RedisModuleConfigApplyFunc applyfn, void *privdata))                                        \
    F(int, RegisterNumericConfig,                                                                  \
      (RedisModuleCtx * ctx, const char *name, long long default_val, unsigned int flags,          \
       long long min, long long max, RedisModuleConfigGetNumericFunc getfn,                        \
       RedisModuleConfigSetNumericFunc setfn, RedisModuleConfigApplyFunc applyfn, void *privdata)) \
    F(int, RegisterStringConfig,                                                                   \
      (RedisModuleCtx * ctx, const char *name, const char *default_val, unsigned int flags,        \
       RedisModuleConfigGetStringFunc getfn, RedisModuleConfigSetStringFunc setfn,                 \
       RedisModuleConfigApplyFunc applyfn, void *privdata))                                        \
    F(int, RegisterEnumConfig,                                                                     \
      (RedisModuleCtx * ctx, const char *name, int default_val, unsigned int flags,                \
       const char **enum_values, const int *int_values, int num_enum_vals,                         \
       RedisModuleConfigGetEnumFunc getfn, RedisModuleConfigSetEnumFunc setfn,                     \
       RedisModuleConfigApplyFunc applyfn, void *privdata))                                        \
    F(int, LoadConfigs, (RedisModuleCtx * ctx))                                                    \
    /* What modules offer one another */                                                           \
    F(int, ExportSharedAPI, (RedisModuleCtx * ctx, const char *apiname, void *func))               \
    F(void *, GetSharedAPI, (RedisModuleCtx * ctx, const char *apiname))                           \
    /* Filters of commands */                                                                      \
    F(RedisModuleCommandFilter *, RegisterCommandFilter,                                           \
      (RedisModuleCtx * ctx, RedisModuleCommandFilterFunc cb, int flags))                          \
    F(int, UnregisterCommandFilter, (RedisModuleCtx * ctx, RedisModuleCommandFilter * filter))     \
    F(int, CommandFilterArgsCount, (RedisModuleCommandFilterCtx * fctx))                           \
    F(RedisModuleString *, CommandFilterArgGet, (RedisModuleCommandFilterCtx * fctx, int pos))     \
    F(int, CommandFilterArgInsert,                                                                 \
      (RedisModuleCommandFilterCtx * fctx, int pos, RedisModuleString *arg))                       \
    F(int, CommandFilterArgReplace,                                                                \
      (RedisModuleCommandFilterCtx * fctx, int pos, RedisModuleString *arg))                       \
    F(int, CommandFilterArgDelete, (RedisModuleCommandFilterCtx * fctx, int pos))                  \
    F(unsigned long long, CommandFilterGetClientId, (RedisModuleCommandFilterCtx * fctx))          \
    /* Children */                                                                                 \
    F(int, Fork, (RedisModuleForkDoneHandler cb, void *user_data))                                 \
    F(void, SendChildHeartbeat, (double progress))                                                 \
    F(int, ExitFromChild, (int retcode))                                                           \
    F(int, KillForkChild, (int child_pid))                                                         \
    /* Defragmentation */                                                                          \
    F(int, RegisterDefragFunc, (RedisModuleCtx * ctx, RedisModuleDefragFunc func))                 \
    F(void *, DefragAlloc, (RedisModuleDefragCtx * ctx, void *ptr))                                \
    F(RedisModuleString *, DefragRedisModuleString,                                                \
      (RedisModuleDefragCtx * ctx, RedisModuleString * str))                                       \
    F(int, DefragShouldStop, (RedisModuleDefragCtx * ctx))                                         \
    F(int, DefragCursorSet, (RedisModuleDefragCtx * ctx, unsigned long cursor))                    \
    F(int, DefragCursorGet, (RedisModuleDefragCtx * ctx, unsigned long *cursor))                   \
    F(int, GetDbIdFromDefragCtx, (RedisModuleDefragCtx * ctx))                                     \
    F(const RedisModuleString *, GetKeyNameFromDefragCtx, (RedisModuleDefragCtx * ctx))            \
    /* RDB files */                                                                                \
    F(RedisModuleRdbStream *, RdbStreamCreateFromFile, (const char *filename))                     \
    F(void, RdbStreamFree, (RedisModuleRdbStream * stream))                                        \
    F(int, RdbLoad, (RedisModuleCtx * ctx, RedisModuleRdbStream * stream, int flags))              \
    F(int, RdbSave, (RedisModuleCtx * ctx, RedisModuleRdbStream * stream, int flags))              \
    /* Cluster */                                                                                  \
    F(void, RegisterClusterMessageReceiver,                                                        \
      (RedisModuleCtx * ctx, uint8_t type, RedisModuleClusterMessageReceiver callback))            \
    F(int, SendClusterMessage,                                                                     \
      (RedisModuleCtx * ctx, const char *target_id, uint8_t type, const char *msg, uint32_t len))  \
    F(int, GetClusterNodeInfo,                                                                     \
      (RedisModuleCtx * ctx, const char *id, char *ip, char *master_id, int *port, int *flags))    \
    F(char **, GetClusterNodesList, (RedisModuleCtx * ctx, size_t * numnodes))                     \
    F(void, FreeClusterNodesList, (char **ids))                                                    \
    F(const char *, GetMyClusterID, (void))                                                        \
    F(size_t, GetClusterSize, (void))                                                              \
    F(void, SetClusterFlags, (RedisModuleCtx * ctx, uint64_t flags))                               \
    F(unsigned int, ClusterKeySlot, (RedisModuleString * key))                                     \
    F(const char *, ClusterCanonicalKeyNameInSlot, (unsigned int slot))

#endif
