/* Payloads of RESTORE (persist/payload.h) under arbitrary bytes: the type number and the value,
 * without version and checksum. What is accepted must hold its type's invariants, also after it was
 * changed, and its own payload must give an equal value again. */
#include "base/buf.h"
#include "base/rand.h"
#include "persist/payload.h"

#include "check_value.h"

/* ---- changes: more members, then none of those that were there ---- */

#define WORD(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
static const struct slice more[] = {WORD("needle"), WORD("-70000"), WORD(""),
                                    WORD("a longer one that no packed form likes, for it has "
                                         "more than sixty-four bytes")};
#define MORE (sizeof(more) / sizeof(more[0]))

static void change_list(struct entry **e)
{
    uint64_t count = list_count(*e);
    list_push(*e, LIST_HEAD, more, MORE);
    list_push(*e, LIST_TAIL, more, MORE);
    check(*e);
    list_insert(*e, MORE + count / 2, more[0]);
    list_replace(*e, MORE + count / 2, more[3]);
    list_remove_range(*e, MORE, count);
    list_shrink(*e);
    check(*e);
    list_remove_equal(*e, more[0], 2, LIST_TAIL);
    for (count = list_count(*e); count > 1; count--) {
        list_pop(*e, LIST_HEAD);
    }
}

static void change_set(struct entry **e)
{
    struct set_member m;
    for (size_t i = 0; i < MORE; i++) {
        set_member_init(&m, more[i]);
        set_add(*e, &m);
        check(*e);
    }
    while (set_count(*e) > 1) {
        struct buf name = {0};
        set_random(*e, &m);
        buf_append_slice(&name, set_member_bytes(&m));
        set_member_init(&m, buf_slice(&name));
        require(set_remove(*e, &m), "a random member can be removed");
        buf_deinit(&name);
    }
}

static void change_zset(struct entry **e)
{
    uint64_t count = zset_count(*e);
    for (size_t i = 0; i < MORE; i++) {
        double score = (double)i - 1.5;
        zset_add(*e, more[i], 0, &score);
        check(*e);
    }
    zset_remove_ranks(*e, 0, count / 2);
    check(*e);
    for (size_t i = 1; i < MORE; i++) {
        zset_remove(*e, more[i]);
    }
}

static void change_hash(struct entry **e)
{
    for (size_t i = 0; i < MORE; i++) {
        hash_set(e, more[i], more[MORE - 1 - i], NULL);
        check(*e);
    }
    for (size_t i = 1; i < MORE; i++) {
        require(hash_delete(*e, more[i]), "what was set can be deleted");
    }
    hash_fit(e);
}

static void change_stream(struct entry **e)
{
    const struct stream_facts *facts = stream_facts(*e);
    struct stream_trim trim = {.kind = STREAM_TRIM_LENGTH, .length = facts->length / 2 + 1};
    struct stream_id id;
    if (stream_next_id(facts, 0, &id)) {
        stream_append(*e, id, more, MORE);
        check(*e);
    }
    if (facts->length > 0) {
        require(stream_delete(*e, facts->first_id), "the first entry can be deleted");
        check(*e);
    }
    stream_trim(*e, &trim);
    check(*e);
    trim = (struct stream_trim){.kind = STREAM_TRIM_ID, .id = facts->last_id};
    stream_trim(*e, &trim);
}

static void change(struct entry **e)
{
    static void (*const changes[VALUE_TYPE_COUNT])(struct entry **) = {
        [VALUE_LIST] = change_list, [VALUE_SET] = change_set,       [VALUE_ZSET] = change_zset,
        [VALUE_HASH] = change_hash, [VALUE_STREAM] = change_stream,
    };
    if (changes[entry_type(*e)]) {
        changes[entry_type(*e)](e);
        check(*e);
    }
}

static void digest(const struct entry *e, uint8_t out[20])
{
    memset(out, 0, 20);
    value_ops_of[entry_type(e)]->digest(e, out);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    prepare_values();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct entry *e, *again;
    struct slice key = SLICE("key");
    rand_set_seed(1); /* levels of skiplists: an input does the same each time */
    if (payload_read_value(slice_of((const char *)bytes, len), key, &e) != PAYLOAD_FINE) {
        require(e == NULL, "a refused payload leaves nothing");
        return 0;
    }
    check(e);
    struct buf payload = {0};
    payload_write(&payload, e);
    require(payload_read(buf_slice(&payload), key, &again) == PAYLOAD_FINE,
            "what was written can be read");
    check(again);
    uint8_t first[20], second[20];
    digest(e, first);
    digest(again, second);
    require(memcmp(first, second, sizeof(first)) == 0, "and is the same value");
    change(&again);
    buf_deinit(&payload);
    entry_destroy(&e);
    entry_destroy(&again);
    return 0;
}
