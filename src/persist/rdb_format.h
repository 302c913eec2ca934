/* The numbers of the RDB format (public: Redis's files, version 2.4 to 7.4) and those of ours.
 *
 * Values of types that only we have use numbers which Redis does not know, so that it refuses them
 * rather than misreads them; they are written only where the data need them:
 *
 *   80  deadlines of members of a set or sorted set: count, then (member, u64 Unix milliseconds)
 *       each; then the type byte and the value without them
 *   81  nested hash: count of leaves, then each: names shared with the leaf before, count of
 *       further names, those names, kind (0 string, 1 list), and for a list the count; strings
 *   82  job (KEYDB.CRON): flags (1: runs once), the user whose rights it has, then as in KeyDB's
 *       number 64: script, u64 start and interval in milliseconds, count of keys, keys, count of
 *       arguments, arguments
 *
 * KeyDB 6.3.4 writes jobs as number 64, without the first two facts: what is read so repeats, with
 * the rights of the user `default`. We always write 82: KeyDB refuses our files anyway, whose
 * version is newer than its own, and Redis refuses either number. A job runs in the database of its
 * key, which KeyDB's files lose as well.
 *
 * State: constants. */
#ifndef PERSIST_RDB_FORMAT_H
#define PERSIST_RDB_FORMAT_H

/* What we write, which Redis 7.0 reads, and the newest that we read (Redis 7.4). */
#define RDB_VERSION_WRITTEN 10
#define RDB_VERSION_READ 12

enum rdb_type {
    RDB_STRING = 0,
    RDB_LIST = 1,
    RDB_SET = 2,
    RDB_ZSET = 3, /* scores as text */
    RDB_HASH = 4,
    RDB_ZSET_2 = 5, /* scores as doubles */
    RDB_MODULE = 7, /* rdb_module.h; 6 was a release candidate's form */
    RDB_HASH_ZIPMAP = 9,
    RDB_LIST_ZIPLIST = 10,
    RDB_SET_INTSET = 11,
    RDB_ZSET_ZIPLIST = 12,
    RDB_HASH_ZIPLIST = 13,
    RDB_LIST_QUICKLIST = 14, /* of ziplists */
    RDB_STREAM = 15,
    RDB_HASH_LISTPACK = 16,
    RDB_ZSET_LISTPACK = 17,
    RDB_LIST_QUICKLIST_2 = 18, /* of listpacks and plain nodes */
    RDB_STREAM_2 = 19,         /* and more facts: Redis 7.0 */
    RDB_SET_LISTPACK = 20,     /* Redis 7.2 */
    RDB_STREAM_3 = 21,         /* and when consumers were active: Redis 7.2 */
    RDB_HASH_METADATA = 24,    /* fields with deadlines: Redis 7.4 */
    RDB_HASH_LISTPACK_EX = 25,
    RDB_KEYDB_CRON = 64, /* KeyDB's */
    RDB_MEMBER_TTL = 80, /* ours */
    RDB_NESTED = 81,
    RDB_JOB = 82,
    RDB_TYPE_COUNT = 83,
};

enum rdb_opcode {
    RDB_OP_SLOT_INFO = 244,
    RDB_OP_FUNCTION = 245,
    RDB_OP_FUNCTION_OLD = 246,
    RDB_OP_MODULE_AUX = 247,
    RDB_OP_IDLE = 248,
    RDB_OP_FREQ = 249,
    RDB_OP_AUX = 250,
    RDB_OP_RESIZE = 251,
    RDB_OP_EXPIRE_MS = 252,
    RDB_OP_EXPIRE_S = 253,
    RDB_OP_SELECT = 254,
    RDB_OP_EOF = 255,
};

/* What a length's byte says in its upper two bits, and whole bytes for the long forms. */
enum rdb_length {
    RDB_LEN_6 = 0,
    RDB_LEN_14 = 1,
    RDB_LEN_32 = 0x80,
    RDB_LEN_64 = 0x81,
    RDB_LEN_ENCODED = 3,
};
/* Encodings of strings. */
enum rdb_string { RDB_INT8 = 0, RDB_INT16 = 1, RDB_INT32 = 2, RDB_LZF = 3 };

#endif
