/* See unit.h. */
#include "active/unit.h"

#include "base/mem.h"
#include "base/num.h"

#include <assert.h>
#include <string.h>

/* A dot has room for so many databases, and more is not configured. */
#define DATABASES_MAX 65536
/* Words of a command. */
#define ARGS_MAX (1024 * 1024)
/* No length has more. */
#define DIGITS_MAX 19

/* The number in a line "<mark><digits>\r\n" at *at, which goes behind it. */
static bool take_header(struct slice all, size_t *at, char mark, uint64_t *number)
{
    const char *p = all.ptr + *at, *end = all.ptr + all.len;
    if (p == end || *p != mark) {
        return false;
    }
    const char *begin = ++p;
    for (*number = 0; p < end && *p >= '0' && *p <= '9' && p - begin < DIGITS_MAX; p++) {
        *number = *number * 10 + (uint64_t)(*p - '0');
    }
    if (p == begin || (*begin == '0' && p - begin > 1) || end - p < 2 || p[0] != '\r' ||
        p[1] != '\n') {
        return false;
    }
    *at = (size_t)(p + 2 - all.ptr);
    return true;
}

/* Room for more words: for so many, more than there is room for. */
static __attribute__((noinline)) void grow(struct unit_command *c, int capacity)
{
    if (c->capacity == 0 && capacity <= UNIT_FEW_WORDS) {
        c->capacity = UNIT_FEW_WORDS;
        c->argv = c->few;
        return;
    }
    bool was_few = c->argv == c->few;
    c->capacity = capacity;
    c->argv = mem_realloc(was_few ? NULL : c->argv, (size_t)capacity * sizeof(*c->argv));
    if (was_few) {
        memcpy(c->argv, c->few, sizeof(c->few));
    }
}

static void put_word(struct unit_command *c, struct slice word)
{
    if (c->argc == c->capacity) {
        grow(c, c->capacity ? 2 * c->capacity : UNIT_FEW_WORDS);
    }
    c->argv[c->argc++] = word;
}

/* The words of the command at *at, which goes behind it; false when there is no whole one. They are
 * anything. */
static bool take_words(struct slice all, size_t *at, struct unit_command *c)
{
    uint64_t words, len;
    c->argc = 0;
    if (!take_header(all, at, '*', &words) || words < 1 || words > ARGS_MAX) {
        return false;
    }
    for (; words > 0; words--) {
        if (!take_header(all, at, '$', &len) || len > all.len || all.len - *at < len + 2 ||
            memcmp(all.ptr + *at + len, "\r\n", 2) != 0) {
            return false;
        }
        put_word(c, slice_of(all.ptr + *at, len));
        *at += len + 2;
    }
    return true;
}

bool unit_take_words(struct slice *commands, struct unit_command *c)
{
    size_t at = 0;
    if (!take_words(*commands, &at, c)) {
        return false;
    }
    *commands = slice_of(commands->ptr + at, commands->len - at);
    return true;
}

#define SELECT "select"
/* What `selected` says of a name as long as that one. */
static __attribute__((noinline)) int selected_by(const struct unit_command *c)
{
    int64_t db;
    if (!slice_equal_nocase(c->argv[0], SELECT)) {
        return -1;
    }
    return c->argc == 2 && num_parse_i64(c->argv[1], &db) && db >= 0 && db < DATABASES_MAX ? (int)db
                                                                                           : -2;
}

/* By the length of its name. */
static inline bool may_select(const struct unit_command *c)
{
    return c->argv[0].len == sizeof(SELECT) - 1;
}

/* The database that a SELECT names; -1 when the command is none, -2 when it is a wrong one. */
static inline int selected(const struct unit_command *c)
{
    return may_select(c) ? selected_by(c) : -1;
}

static bool are_commands(struct slice all)
{
    struct unit_command c = {0};
    bool any = false, good = true;
    for (size_t at = 0; good && at < all.len;) {
        good = take_words(all, &at, &c);
        int db = good ? selected(&c) : -2;
        good = good && db != -2;
        any = any || db == -1;
    }
    unit_command_end(&c);
    return good && any;
}

/* ---- what was looked at when the unit was made ---- */

/* The number in a line, and what is behind it. */
static ALWAYS_INLINE const char *read_line(const char *at, uint32_t *number)
{
    *number = (uint32_t)(at[1] - '0');
    for (at += 2; *at != '\r'; at++) {
        *number = *number * 10 + (uint32_t)(*at - '0');
    }
    return at + 2;
}

/* The command at c->end, which is whole; false, and nothing done, when it has too many words. */
static ALWAYS_INLINE bool read_few(const struct unit *u, struct unit_command *c)
{
    uint32_t words, len;
    const char *at = read_line(u->bytes + c->end, &words);
    if (likely(c->capacity == 0 && words <= UNIT_FEW_WORDS)) {
        c->capacity = UNIT_FEW_WORDS;
        c->argv = c->few;
    } else if (unlikely((int)words > c->capacity)) {
        return false;
    }
    c->offset = c->end;
    c->argc = (int)words;
    struct slice *argv = c->argv;
    for (uint32_t i = 0; i < words; i++) {
        at = read_line(at, &len);
        argv[i] = slice_of(at, len);
        at += len + 2;
    }
    c->end = (uint32_t)(at - u->bytes);
    assert(c->end <= u->len);
    return true;
}

/* However many they are. */
static __attribute__((noinline)) void read_command(const struct unit *u, struct unit_command *c)
{
    if (!read_few(u, c)) {
        uint32_t words;
        read_line(u->bytes + c->end, &words);
        grow(c, (int)words);
        bool read = read_few(u, c);
        assert(read);
    }
}

/* ---- memory ---- */

#define SPARE_PART 64
#define SPARE_FROM_BYTES ((size_t)256 * 1024)
#define SPARE_MAX_BYTES ((size_t)4 << 20)

size_t unit_spare(size_t bytes_max)
{
    size_t spare = bytes_max >= SPARE_FROM_BYTES ? bytes_max / SPARE_PART : 0;
    return spare < SPARE_MAX_BYTES ? spare : SPARE_MAX_BYTES;
}

/* Units leave much as they came, so small ones stand one behind the other in blocks, which go as a
 * whole: a write pays for no allocation of its own. Blocks grow with what there is of them, up to
 * where the allocator finds their like again among what has been given back, which it does not for
 * small ones where much has; and not beyond a part of what is kept, for the last ones stay as long
 * as one of their units. Sanitizers are to see each unit by itself. */
struct block {
    uint32_t here;        /* units */
    uint32_t used, bytes; /* bytes, with this head */
};
#define BLOCK_BYTES_MIN ((uint32_t)16 * 1024)
#define BLOCK_BYTES_MAX ((uint32_t)4 << 20)
#define BLOCK_PART 64
#define BLOCK_BEGIN ((uint32_t)16)
#define SMALL_BYTES (KEYDB_JEMALLOC ? (size_t)1024 : 0)

/* Where the next one goes; NULL: none was made yet. Keyspace (exclusive mode). */
static struct block *filling;
static uint64_t blocks_bytes; /* of all */
static uint64_t kept_bytes = UINT64_MAX;

void unit_keep(size_t bytes_max)
{
    kept_bytes = bytes_max;
}

static __attribute__((noinline)) void next_block(void)
{
    uint64_t part = (blocks_bytes < kept_bytes ? blocks_bytes : kept_bytes) / BLOCK_PART;
    uint32_t bytes = BLOCK_BYTES_MIN;
    while (bytes < BLOCK_BYTES_MAX && 2 * bytes <= part) {
        bytes *= 2;
    }
    filling = mem_alloc_reused(bytes);
    *filling = (struct block){.used = BLOCK_BEGIN, .bytes = bytes};
    blocks_bytes += bytes;
}

void unit_free(struct unit *u)
{
    struct block *b = (struct block *)((char *)u - u->place);
    if (unlikely(u->place == 0)) {
        mem_free_sized(u, sizeof(*u) + u->len);
    } else if (unlikely(--b->here == 0)) {
        if (b == filling) {
            b->used = BLOCK_BEGIN;
        } else {
            blocks_bytes -= b->bytes;
            mem_free_reused(b);
        }
    }
}

static inline struct unit *fill(struct unit *u, uint32_t place, struct dot dot, int db,
                                struct slice commands)
{
    u->references = 1;
    u->db = (uint16_t)db;
    u->has_causes = u->is_large = false;
    u->dot = dot;
    u->len = (uint32_t)commands.len;
    u->place = place;
    memcpy(u->bytes, commands.ptr, commands.len);
    return u;
}

/* Where the block that is being filled has no room. */
static __attribute__((noinline)) struct unit *create_with_room(struct dot dot, int db,
                                                               struct slice commands)
{
    size_t bytes = sizeof(struct unit) + commands.len;
    if (bytes > SMALL_BYTES) {
        return fill(mem_alloc(bytes), 0, dot, db, commands);
    }
    next_block();
    return unit_create_sound(dot, db, commands);
}

/* Each write comes here: calls stand at ends alone. */
struct unit *unit_create_sound(struct dot dot, int db, struct slice commands)
{
    assert(commands.len < INT32_MAX && db >= 0 && db < DATABASES_MAX);
    assert(!KEYDB_DEBUG || are_commands(commands));
    size_t bytes = sizeof(struct unit) + commands.len, room = (bytes + 15) & ~(size_t)15;
    struct block *b = filling;
    if (unlikely(bytes > SMALL_BYTES || !b || b->bytes - b->used < room)) {
        return create_with_room(dot, db, commands);
    }
    uint32_t place = b->used;
    b->used += (uint32_t)room;
    b->here++;
    return fill((struct unit *)((char *)b + place), place, dot, db, commands);
}

struct unit *unit_create(struct dot dot, int db, struct slice commands)
{
    return commands.len < INT32_MAX && db >= 0 && db < DATABASES_MAX && are_commands(commands)
               ? unit_create_sound(dot, db, commands)
               : NULL;
}

/* The same when the next one has many words, or one was read that may be a SELECT. */
static __attribute__((noinline)) bool read_on(const struct unit *u, struct unit_command *c,
                                              bool has_read)
{
    for (; has_read || c->end < u->len; has_read = false) {
        if (!has_read) {
            read_command(u, c);
        }
        int db = selected(c);
        if (db == -1) {
            c->number++;
            return true;
        }
        c->db = db;
    }
    unit_command_end(c);
    return false;
}

/* Each write comes here: calls stand at ends alone. */
bool unit_command_read(const struct unit *u, struct unit_command *c)
{
    if (unlikely(c->end >= u->len || !read_few(u, c))) {
        return read_on(u, c, false);
    }
    if (unlikely(may_select(c))) {
        return read_on(u, c, true);
    }
    c->number++;
    return true;
}

#define SET_HEAD "*3\r\n$3\r\n"

static inline bool begins_with_set(const struct unit *u)
{
    const char *name = u->bytes + sizeof(SET_HEAD) - 1;
    return u->len > sizeof(SET_HEAD "SET\r\n") &&
           memcmp(u->bytes, SET_HEAD, sizeof(SET_HEAD) - 1) == 0 && (name[0] | 0x20) == 's' &&
           (name[1] | 0x20) == 'e' && (name[2] | 0x20) == 't';
}

bool unit_is_set(const struct unit *u, struct unit_command *c)
{
    uint32_t len;
    if (!begins_with_set(u)) {
        return false;
    }
    const char *at = u->bytes + sizeof(SET_HEAD) - 1;
    c->few[0] = slice_of(at, 3);
    at = read_line(at + 5, &len);
    c->few[1] = slice_of(at, len);
    at = read_line(at + len + 2, &len);
    c->few[2] = slice_of(at, len);
    c->argv = c->few;
    c->argc = 3;
    c->capacity = UNIT_FEW_WORDS;
    c->db = u->db;
    c->number = c->offset = 0;
    c->end = (uint32_t)(at + len + 2 - u->bytes);
    return c->end == u->len;
}

void unit_command_at(const struct unit *u, uint32_t offset, struct unit_command *c)
{
    *c = (struct unit_command){.end = offset};
    read_command(u, c);
}

void unit_command_end(struct unit_command *c)
{
    if (c->argv != c->few) {
        mem_free(c->argv);
    }
    c->argv = NULL;
    c->argc = c->capacity = 0;
}

struct slice *unit_command_take(struct unit_command *c)
{
    struct slice *words = c->argv;
    if (words == c->few) {
        words = mem_alloc(sizeof(c->few));
        memcpy(words, c->few, sizeof(c->few));
    }
    c->argv = NULL;
    c->argc = c->capacity = 0;
    return words;
}

void unit_put_word(struct buf *out, struct slice word)
{
    buf_printf(out, "$%zu\r\n", word.len);
    buf_append_slice(out, word);
    buf_append_cstr(out, "\r\n");
}

void unit_put_number(struct buf *out, uint64_t number)
{
    char text[NUM_I64_MAX_CHARS];
    unit_put_word(out, slice_of(text, num_format_u64(text, number)));
}
