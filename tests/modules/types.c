/* Types of values, for tests: `testboxes`, with all methods, and `testplain`, with those of the
 * first version only. A box holds texts and one number of each sort. What is called of it is noted,
 * and TY.LOG tells it. Arguments of the module: version N (of the methods), encver N, errors (it
 * handles them), aux2 (aux_save2 instead of aux_save), noaux, refuse (it reads nothing), saves (it
 * notes what is saved). */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef RedisModuleString String;

static RedisModuleType *boxes, *plains;
static int method_version = REDISMODULE_TYPE_METHOD_VERSION, encver = 1, refuses, uses_aux2, no_aux,
           notes_saves;
static int live; /* boxes; those of the background are freed there */
static char *aux_before, *aux_after;

static const char *text_of(const String *s)
{
    return s ? RedisModule_StringPtrLen(s, NULL) : "-";
}

/* 0 where it is none. */
static int number_of(const String *s)
{
    long long number = 0;
    RedisModule_StringToLongLong(s, &number);
    return (int)number;
}

/* ---- what was called ---- */

#define NOTES 64
#define NOTE_BYTES 160

static char notes[NOTES][NOTE_BYTES];
static int note_count;

static char *next_note(void)
{
    return notes[note_count < NOTES ? note_count++ : NOTES - 1];
}

#define NOTE(...) snprintf(next_note(), NOTE_BYTES, __VA_ARGS__)

/* ---- boxes ---- */

struct box {
    char **texts;
    size_t *lens;
    size_t count;
    int64_t number;
    uint64_t natural;
    double wide;
    float narrow;
    long double widest;
};

static struct box *box_create(void)
{
    __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
    return RedisModule_Calloc(1, sizeof(struct box));
}

static void box_add(struct box *b, const char *bytes, size_t len)
{
    b->texts = RedisModule_Realloc(b->texts, (b->count + 1) * sizeof(*b->texts));
    b->lens = RedisModule_Realloc(b->lens, (b->count + 1) * sizeof(*b->lens));
    b->texts[b->count] = RedisModule_Alloc(len + 1);
    memcpy(b->texts[b->count], bytes, len);
    b->lens[b->count++] = len;
}

static void box_free(void *value)
{
    struct box *b = value;
    for (size_t i = 0; i < b->count; i++) {
        RedisModule_Free(b->texts[i]);
    }
    RedisModule_Free(b->texts);
    RedisModule_Free(b->lens);
    RedisModule_Free(b);
    __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
}

static void box_save(RedisModuleIO *io, void *value)
{
    struct box *b = value;
    if (notes_saves) {
        NOTE("save %s db %d", text_of(RedisModule_GetKeyNameFromIO(io)),
             RedisModule_GetDbIdFromIO(io));
    }
    RedisModule_SaveUnsigned(io, b->count);
    for (size_t i = 0; i < b->count; i++) {
        if (i % 2) {
            String *s = RedisModule_CreateString(NULL, b->texts[i], b->lens[i]);
            RedisModule_SaveString(io, s);
            RedisModule_FreeString(NULL, s);
        } else {
            RedisModule_SaveStringBuffer(io, b->texts[i], b->lens[i]);
        }
    }
    RedisModule_SaveSigned(io, b->number);
    RedisModule_SaveUnsigned(io, b->natural);
    RedisModule_SaveDouble(io, b->wide);
    RedisModule_SaveFloat(io, b->narrow);
    RedisModule_SaveLongDouble(io, b->widest);
}

static void load_text(RedisModuleIO *io, struct box *b, uint64_t index)
{
    size_t len = 0;
    if (index % 2) {
        char *bytes = RedisModule_LoadStringBuffer(io, &len);
        if (bytes) {
            box_add(b, bytes, len);
            RedisModule_Free(bytes);
        }
        return;
    }
    String *s = RedisModule_LoadString(io);
    if (s) {
        const char *bytes = RedisModule_StringPtrLen(s, &len);
        box_add(b, bytes, len);
        RedisModule_FreeString(NULL, s);
    }
}

static _Atomic long long loaded; /* by as many calls */

static void *box_load(RedisModuleIO *io, int version)
{
    loaded++;
    if (refuses || version > encver) {
        RedisModule_LogIOError(io, "warning", "no box of version %d", version);
        return NULL;
    }
    struct box *b = box_create();
    uint64_t count = RedisModule_LoadUnsigned(io);
    for (uint64_t i = 0; i < count && !RedisModule_IsIOError(io); i++) {
        load_text(io, b, i);
    }
    b->number = RedisModule_LoadSigned(io);
    b->natural = RedisModule_LoadUnsigned(io);
    b->wide = RedisModule_LoadDouble(io);
    b->narrow = RedisModule_LoadFloat(io);
    b->widest = RedisModule_LoadLongDouble(io);
    if (RedisModule_IsIOError(io)) {
        box_free(b);
        return NULL;
    }
    NOTE("load %s db %d", text_of(RedisModule_GetKeyNameFromIO(io)), RedisModule_GetDbIdFromIO(io));
    return b;
}

static void box_rewrite(RedisModuleIO *io, String *key, void *value)
{
    struct box *b = value;
    for (size_t i = 0; i < b->count; i++) {
        RedisModule_EmitAOF(io, "TY.PUSH", "sb", key, b->texts[i], b->lens[i]);
    }
    char wide[64], narrow[64], widest[64], natural[32];
    snprintf(wide, sizeof(wide), "%.17g", b->wide);
    snprintf(narrow, sizeof(narrow), "%.9g", (double)b->narrow);
    snprintf(widest, sizeof(widest), "%.21Lg", b->widest);
    snprintf(natural, sizeof(natural), "%llu", (unsigned long long)b->natural);
    RedisModule_EmitAOF(io, "TY.NUMBERS", "slcccc", key, (long long)b->number, natural, wide,
                        narrow, widest);
}

static size_t box_bytes(const void *value)
{
    const struct box *b = value;
    size_t bytes = 100000;
    for (size_t i = 0; i < b->count; i++) {
        bytes += b->lens[i];
    }
    return bytes;
}

static size_t box_bytes2(RedisModuleKeyOptCtx *ctx, const void *value, size_t samples)
{
    NOTE("memory %s db %d samples %zu", text_of(RedisModule_GetKeyNameFromOptCtx(ctx)),
         RedisModule_GetDbIdFromOptCtx(ctx), samples);
    return box_bytes(value);
}

/* A sequence of the texts, and one of a number: either order of the two is the same. */
static void box_digest(RedisModuleDigest *digest, void *value)
{
    const struct box *b = value;
    for (size_t i = 0; i < b->count; i++) {
        RedisModule_DigestAddStringBuffer(digest, b->texts[i], b->lens[i]);
    }
    RedisModule_DigestEndSequence(digest);
    RedisModule_DigestAddLongLong(digest, b->number);
    RedisModule_DigestEndSequence(digest);
    NOTE("digest %s db %d", text_of(RedisModule_GetKeyNameFromDigest(digest)),
         RedisModule_GetDbIdFromDigest(digest));
}

static size_t box_effort(String *key, const void *value)
{
    NOTE("effort %s", text_of(key));
    return ((const struct box *)value)->count;
}

static size_t box_effort2(RedisModuleKeyOptCtx *ctx, const void *value)
{
    NOTE("effort %s", text_of(RedisModule_GetKeyNameFromOptCtx(ctx)));
    return ((const struct box *)value)->count;
}

static void box_unlink(String *key, const void *value)
{
    NOTE("unlink %s with %zu", text_of(key), ((const struct box *)value)->count);
}

static void box_unlink2(RedisModuleKeyOptCtx *ctx, const void *value)
{
    NOTE("unlink %s with %zu db %d", text_of(RedisModule_GetKeyNameFromOptCtx(ctx)),
         ((const struct box *)value)->count, RedisModule_GetDbIdFromOptCtx(ctx));
}

/* A box with the text "once" is not copied. */
static void *box_copy(String *from, String *to, const void *value)
{
    const struct box *b = value;
    NOTE("copy %s to %s", text_of(from), text_of(to));
    for (size_t i = 0; i < b->count; i++) {
        if (b->lens[i] == 4 && memcmp(b->texts[i], "once", 4) == 0) {
            return NULL;
        }
    }
    struct box *copy = box_create();
    for (size_t i = 0; i < b->count; i++) {
        box_add(copy, b->texts[i], b->lens[i]);
    }
    copy->number = b->number;
    copy->natural = b->natural;
    copy->wide = b->wide;
    copy->narrow = b->narrow;
    copy->widest = b->widest;
    return copy;
}

static void *box_copy2(RedisModuleKeyOptCtx *ctx, const void *value)
{
    NOTE("copy db %d to %d, %s to %s", RedisModule_GetDbIdFromOptCtx(ctx),
         RedisModule_GetToDbIdFromOptCtx(ctx), text_of(RedisModule_GetKeyNameFromOptCtx(ctx)),
         text_of(RedisModule_GetToKeyNameFromOptCtx(ctx)));
    return box_copy(NULL, NULL, value);
}

/* ---- what is no key ---- */

static char **aux_at(int when)
{
    return when == REDISMODULE_AUX_BEFORE_RDB ? &aux_before : &aux_after;
}

static void aux_set(int when, const char *bytes, size_t len)
{
    char **at = aux_at(when);
    RedisModule_Free(*at);
    *at = len ? RedisModule_Calloc(1, len + 1) : NULL;
    if (len) {
        memcpy(*at, bytes, len);
    }
}

static void box_aux_save(RedisModuleIO *io, int when)
{
    const char *text = *aux_at(when);
    if (text || !uses_aux2) {
        RedisModule_SaveStringBuffer(io, text ? text : "", text ? strlen(text) : 0);
    }
}

static int box_aux_load(RedisModuleIO *io, int version, int when)
{
    size_t len = 0;
    char *bytes = version <= encver ? RedisModule_LoadStringBuffer(io, &len) : NULL;
    if (!bytes) {
        return REDISMODULE_ERR;
    }
    if (RedisModule_RdbSave) { /* redis-server 7.0 has no client for this context, and crashes */
        NOTE("aux %d after %llu keys", when, RedisModule_DbSize(RedisModule_GetContextFromIO(io)));
    }
    aux_set(when, bytes, len);
    RedisModule_Free(bytes);
    return REDISMODULE_OK;
}

/* ---- plain values: a number each ---- */

static void *plain_load(RedisModuleIO *io, int version)
{
    int64_t *number = RedisModule_Alloc(sizeof(*number));
    (void)version;
    *number = RedisModule_LoadSigned(io);
    return number;
}

static void plain_save(RedisModuleIO *io, void *value)
{
    RedisModule_SaveSigned(io, *(int64_t *)value);
}

static void plain_rewrite(RedisModuleIO *io, String *key, void *value)
{
    RedisModule_EmitAOF(io, "TY.PLAIN", "sl", key, (long long)*(int64_t *)value);
}

static void plain_free(void *value)
{
    RedisModule_Free(value);
}

/* ---- commands ---- */

/* The box at the key, opened: a new one where there is none and `k` may be written. NULL: WRONGTYPE
 * is replied, or nothing is there. */
static struct box *box_at(RedisModuleCtx *ctx, RedisModuleKey *k, int creates)
{
    if (RedisModule_KeyType(k) == REDISMODULE_KEYTYPE_EMPTY) {
        if (!creates) {
            RedisModule_ReplyWithNull(ctx);
            return NULL;
        }
        RedisModule_ModuleTypeSetValue(k, boxes, box_create());
    }
    if (RedisModule_ModuleTypeGetType(k) != boxes) {
        RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
        return NULL;
    }
    return RedisModule_ModuleTypeGetValue(k);
}

static RedisModuleKey *open_key(RedisModuleCtx *ctx, String *name, int mode)
{
    return RedisModule_OpenKey(ctx, name, mode);
}

/* TY.PUSH key text [text ...] */
static int ty_push(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModule_AutoMemory(ctx);
    if (argc < 3) {
        return RedisModule_WrongArity(ctx);
    }
    struct box *b = box_at(ctx, open_key(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE), 1);
    if (!b) {
        return REDISMODULE_OK;
    }
    for (int i = 2; i < argc; i++) {
        size_t len;
        const char *bytes = RedisModule_StringPtrLen(argv[i], &len);
        box_add(b, bytes, len);
    }
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithLongLong(ctx, (long long)b->count);
}

/* TY.NUMBERS key signed unsigned double float long-double */
static int ty_numbers(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModule_AutoMemory(ctx);
    if (argc != 7) {
        return RedisModule_WrongArity(ctx);
    }
    struct box *b = box_at(ctx, open_key(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE), 1);
    if (!b) {
        return REDISMODULE_OK;
    }
    b->number = strtoll(text_of(argv[2]), NULL, 10);
    b->natural = strtoull(text_of(argv[3]), NULL, 10);
    b->wide = strtod(text_of(argv[4]), NULL);
    b->narrow = strtof(text_of(argv[5]), NULL);
    b->widest = strtold(text_of(argv[6]), NULL);
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* TY.ALL key: what is in it. */
static int ty_all(RedisModuleCtx *ctx, String **argv, int argc)
{
    char text[256];
    RedisModule_AutoMemory(ctx);
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    struct box *b = box_at(ctx, open_key(ctx, argv[1], REDISMODULE_READ), 0);
    if (!b) {
        return REDISMODULE_OK;
    }
    RedisModule_ReplyWithArray(ctx, (long)b->count + 1);
    for (size_t i = 0; i < b->count; i++) {
        RedisModule_ReplyWithStringBuffer(ctx, b->texts[i], b->lens[i]);
    }
    snprintf(text, sizeof(text), "%lld %llu %.17g %.9g %.21Lg", (long long)b->number,
             (unsigned long long)b->natural, b->wide, (double)b->narrow, b->widest);
    return RedisModule_ReplyWithCString(ctx, text);
}

/* TY.PLAIN key [number]: sets it, or tells it. */
static int ty_plain(RedisModuleCtx *ctx, String **argv, int argc)
{
    long long number;
    RedisModule_AutoMemory(ctx);
    if (argc == 2) {
        RedisModuleKey *k = open_key(ctx, argv[1], REDISMODULE_READ);
        const int64_t *value = RedisModule_ModuleTypeGetValue(k);
        return RedisModule_ModuleTypeGetType(k) != plains
                   ? RedisModule_ReplyWithNull(ctx)
                   : RedisModule_ReplyWithLongLong(ctx, (long long)*value);
    }
    if (argc != 3 || RedisModule_StringToLongLong(argv[2], &number) != REDISMODULE_OK) {
        return RedisModule_WrongArity(ctx);
    }
    int64_t *value = RedisModule_Alloc(sizeof(*value));
    *value = number;
    RedisModuleKey *k = open_key(ctx, argv[1], REDISMODULE_WRITE);
    RedisModule_ModuleTypeSetValue(k, plains, value);
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* TY.KIND key: what functions say of it, whatever it is. */
static int ty_kind(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModule_AutoMemory(ctx);
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *k = open_key(ctx, argv[1], REDISMODULE_READ);
    RedisModuleType *t = RedisModule_ModuleTypeGetType(k);
    RedisModule_ReplyWithArray(ctx, 4);
    RedisModule_ReplyWithLongLong(ctx, RedisModule_KeyType(k));
    RedisModule_ReplyWithCString(ctx, t == boxes    ? "box"
                                      : t == plains ? "plain"
                                      : t           ? "?"
                                                    : "none");
    RedisModule_ReplyWithLongLong(ctx, RedisModule_ModuleTypeGetValue(k) != NULL);
    return RedisModule_ReplyWithLongLong(ctx, (long long)RedisModule_ValueLength(k));
}

/* TY.REPLACE key: an empty box instead of the one there; how many texts that had. */
static int ty_replace(RedisModuleCtx *ctx, String **argv, int argc)
{
    void *old = NULL;
    RedisModule_AutoMemory(ctx);
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    struct box *fresh = box_create();
    RedisModuleKey *k = open_key(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
    if (RedisModule_ModuleTypeReplaceValue(k, boxes, fresh, &old) != REDISMODULE_OK) {
        box_free(fresh);
        return RedisModule_ReplyWithNull(ctx);
    }
    RedisModule_ReplyWithLongLong(ctx, (long long)((struct box *)old)->count);
    box_free(old);
    RedisModule_ReplicateVerbatim(ctx);
    return REDISMODULE_OK;
}

/* TY.STRING key: the value as a string; TY.STRING key string encver: makes one of it. */
static int ty_string(RedisModuleCtx *ctx, String **argv, int argc)
{
    RedisModule_AutoMemory(ctx);
    if (argc == 2) {
        struct box *b = box_at(ctx, open_key(ctx, argv[1], REDISMODULE_READ), 0);
        return b ? RedisModule_ReplyWithString(ctx, RedisModule_SaveDataTypeToString(ctx, b, boxes))
                 : REDISMODULE_OK;
    }
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    int version = number_of(argv[3]);
    void *b = version ? RedisModule_LoadDataTypeFromStringEncver(argv[2], boxes, version)
                      : RedisModule_LoadDataTypeFromString(argv[2], boxes);
    if (!b) {
        return RedisModule_ReplyWithNull(ctx);
    }
    RedisModuleKey *k = open_key(ctx, argv[1], REDISMODULE_WRITE);
    RedisModule_ModuleTypeSetValue(k, boxes, b);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* TY.AUX before|after [text] */
static int ty_aux(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 2 && argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    int when = strcasecmp(text_of(argv[1]), "before") == 0 ? REDISMODULE_AUX_BEFORE_RDB
                                                           : REDISMODULE_AUX_AFTER_RDB;
    if (argc == 2) {
        const char *text = *aux_at(when);
        return text ? RedisModule_ReplyWithCString(ctx, text) : RedisModule_ReplyWithNull(ctx);
    }
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(argv[2], &len);
    aux_set(when, bytes, len);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* TY.LOG: what was called since the last time. */
static int ty_log(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    RedisModule_ReplyWithArray(ctx, note_count);
    for (int i = 0; i < note_count; i++) {
        RedisModule_ReplyWithCString(ctx, notes[i]);
    }
    note_count = 0;
    return REDISMODULE_OK;
}

/* TY.LIVE: boxes that there are. */
static int ty_live(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithLongLong(ctx, __atomic_load_n(&live, __ATOMIC_RELAXED));
}

/* ---- walks ---- */

struct walk {
    RedisModuleCtx *ctx;
    long count;
    int deletes;
};

static void see_key(RedisModuleCtx *ctx, String *name, RedisModuleKey *key, void *context)
{
    struct walk *w = context;
    RedisModule_ReplyWithString(ctx, name);
    RedisModule_ReplyWithLongLong(ctx, key ? RedisModule_KeyType(key) : -1);
    w->count += 2;
    if (w->deletes) {
        RedisModule_FreeCallReply(RedisModule_Call(ctx, "DEL", "s", name));
    }
}

/* TY.SCAN [delete]: names and types in turn, and what the last two steps returned. */
static int ty_scan(RedisModuleCtx *ctx, String **argv, int argc)
{
    struct walk w = {.ctx = ctx, .deletes = argc == 2};
    (void)argv;
    RedisModuleScanCursor *cursor = RedisModule_ScanCursorCreate();
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    while (RedisModule_Scan(ctx, cursor, see_key, &w)) {
    }
    errno = 0;
    RedisModule_ReplyWithLongLong(ctx, RedisModule_Scan(ctx, cursor, see_key, &w));
    RedisModule_ReplyWithLongLong(ctx, errno == ENOENT);
    RedisModule_ScanCursorRestart(cursor);
    RedisModule_ScanCursorDestroy(cursor);
    RedisModule_ReplySetArrayLength(ctx, w.count + 2);
    return REDISMODULE_OK;
}

static void see_element(RedisModuleKey *key, String *field, String *value, void *context)
{
    struct walk *w = context;
    (void)key;
    RedisModule_ReplyWithString(w->ctx, field);
    if (value) {
        RedisModule_ReplyWithString(w->ctx, value);
    } else {
        RedisModule_ReplyWithNull(w->ctx);
    }
    w->count += 2;
}

/* TY.ELEMENTS key: fields and values in turn, and how the walk ended. */
static int ty_elements(RedisModuleCtx *ctx, String **argv, int argc)
{
    struct walk w = {.ctx = ctx};
    RedisModule_AutoMemory(ctx);
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    RedisModuleKey *k = open_key(ctx, argv[1], REDISMODULE_READ);
    RedisModuleScanCursor *cursor = RedisModule_ScanCursorCreate();
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    while (RedisModule_ScanKey(k, cursor, see_element, &w)) {
    }
    RedisModule_ReplyWithCString(ctx, errno == 0 ? "ended" : errno == EINVAL ? "EINVAL" : "?");
    RedisModule_ReplyWithLongLong(ctx, RedisModule_ScanKey(k, cursor, see_element, &w));
    RedisModule_ReplyWithCString(ctx, errno == ENOENT   ? "ENOENT"
                                      : errno == EINVAL ? "EINVAL"
                                                        : "?");
    RedisModule_ScanCursorDestroy(cursor);
    RedisModule_ReplySetArrayLength(ctx, w.count + 3);
    return REDISMODULE_OK;
}

/* TY.LOADED: how often a box was asked for. */
static int ty_loaded(RedisModuleCtx *ctx, String **argv, int argc)
{
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithLongLong(ctx, loaded);
}

/* TY.RDBSAVE file flags, TY.RDBLOAD file flags: where the server knows it (7.2 on). */
static int ty_rdb(RedisModuleCtx *ctx, String **argv, int argc)
{
    if (argc != 3 || !RedisModule_RdbSave) {
        return RedisModule_ReplyWithError(ctx, "ERR not here");
    }
    RedisModuleRdbStream *s = RedisModule_RdbStreamCreateFromFile(text_of(argv[1]));
    int loads = strcasecmp(text_of(argv[0]), "ty.rdbload") == 0;
    int result = loads ? RedisModule_RdbLoad(ctx, s, number_of(argv[2]))
                       : RedisModule_RdbSave(ctx, s, number_of(argv[2]));
    int error = errno;
    RedisModule_RdbStreamFree(s);
    return result == REDISMODULE_OK ? RedisModule_ReplyWithSimpleString(ctx, "OK")
                                    : RedisModule_ReplyWithError(ctx, strerror(error));
}

/* ---- loading ---- */

static int take_arguments(RedisModuleCtx *ctx, String **argv, int argc)
{
    for (int i = 0; i < argc; i++) {
        const char *word = text_of(argv[i]);
        int more = i + 1 < argc;
        if (strcmp(word, "version") == 0 && more) {
            method_version = number_of(argv[++i]);
        } else if (strcmp(word, "encver") == 0 && more) {
            encver = number_of(argv[++i]);
        } else if (strcmp(word, "errors") == 0) {
            RedisModule_SetModuleOptions(ctx, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS);
        } else if (strcmp(word, "aux2") == 0) {
            uses_aux2 = 1;
        } else if (strcmp(word, "noaux") == 0) {
            no_aux = 1;
        } else if (strcmp(word, "saves") == 0) {
            notes_saves = 1;
        } else if (strcmp(word, "refuse") == 0) {
            refuses = 1;
        } else {
            return REDISMODULE_ERR;
        }
    }
    return REDISMODULE_OK;
}

static int create_types(RedisModuleCtx *ctx)
{
    RedisModuleTypeMethods box = {
        .version = (uint64_t)method_version,
        .rdb_load = box_load,
        .rdb_save = box_save,
        .aof_rewrite = box_rewrite,
        .mem_usage = box_bytes,
        .digest = box_digest,
        .free = box_free,
        .aux_load = box_aux_load,
        .aux_save = uses_aux2 ? NULL : box_aux_save,
        .aux_save_triggers = no_aux ? 0 : REDISMODULE_AUX_BEFORE_RDB | REDISMODULE_AUX_AFTER_RDB,
        .free_effort = box_effort,
        .unlink = box_unlink,
        .copy = box_copy,
        .mem_usage2 = box_bytes2,
        .free_effort2 = box_effort2,
        .unlink2 = box_unlink2,
        .copy2 = box_copy2,
        .aux_save2 = uses_aux2 ? box_aux_save : NULL,
    };
    RedisModuleTypeMethods plain = {.version = 1,
                                    .rdb_load = plain_load,
                                    .rdb_save = plain_save,
                                    .aof_rewrite = plain_rewrite,
                                    .free = plain_free};
    /* None of these can be. */
    if (RedisModule_CreateDataType(ctx, "short", 0, &plain) ||
        RedisModule_CreateDataType(ctx, "toolong-1234", 0, &plain) ||
        RedisModule_CreateDataType(ctx, "not good!", 0, &plain) ||
        RedisModule_CreateDataType(ctx, "testplain", 1024, &plain)) {
        return REDISMODULE_ERR;
    }
    boxes = RedisModule_CreateDataType(ctx, "testboxes", encver, &box);
    plains = RedisModule_CreateDataType(ctx, "testplain", 0, &plain);
    return boxes && plains ? REDISMODULE_OK : REDISMODULE_ERR;
}

static const struct test_command commands[] = {
    {"ty.push", ty_push, "write deny-oom", 1},
    {"ty.numbers", ty_numbers, "write deny-oom", 1},
    {"ty.all", ty_all, "readonly", 1},
    {"ty.plain", ty_plain, "write deny-oom", 1},
    {"ty.see", ty_plain, "readonly", 1}, /* the same, where nothing is written */
    {"ty.kind", ty_kind, "readonly", 1},
    {"ty.replace", ty_replace, "write", 1},
    {"ty.string", ty_string, "write", 1},
    {"ty.aux", ty_aux, "", 0},
    {"ty.log", ty_log, "", 0},
    {"ty.live", ty_live, "", 0},
    {"ty.scan", ty_scan, "write", 0},
    {"ty.elements", ty_elements, "readonly", 1},
    {"ty.loaded", ty_loaded, "", 0},
    {"ty.rdbsave", ty_rdb, "", 0},
    {"ty.rdbload", ty_rdb, "", 0},
};

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (RedisModule_Init(ctx, "types", 1, REDISMODULE_APIVER_1) != REDISMODULE_OK ||
        take_arguments(ctx, argv, argc) != REDISMODULE_OK || create_types(ctx) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    return CREATE_COMMANDS(ctx, commands, "", 0);
}
