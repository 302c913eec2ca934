/* See log_reserve.h. */
#include "active/log_reserve.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

/* Marks of an origin are so far apart at least: that much is read in vain at most, and of 100 GiB
 * they take 6 MiB. */
#define MARK_BYTES ((uint64_t)256 * 1024)
/* Read at a time. */
#define READ_BYTES ((size_t)64 * 1024)

struct head {
    uint64_t stamp, place; /* struct dot */
    uint32_t len;
    uint16_t db;
    uint8_t has_causes, zero;
};
#define HEAD_BYTES sizeof(struct head)
static_assert(sizeof(struct head) == 24, "no padding");

/* The origin's records from this one on stand at `position` or behind. */
struct mark {
    uint64_t sequence, position;
};

/* An origin's; marks[gone] to marks[count - 1], in order of both. */
struct row {
    struct mark *marks;
    uint32_t gone, count, capacity;
    uint64_t next; /* the sequence of its next record */
};

struct log_reserve {
    struct reserve *reserve;
    struct chain chain;
    struct row *rows; /* by origin's index */
    uint32_t rows_count;
};

struct log_reserve *log_reserve_create(struct reserve *reserve)
{
    struct log_reserve *r = mem_calloc(1, sizeof(*r));
    r->reserve = reserve;
    chain_init(&r->chain, 0);
    reserve_follow(reserve, &r->chain);
    return r;
}

void log_reserve_destroy(struct log_reserve **reserve)
{
    struct log_reserve *r = *reserve;
    *reserve = NULL;
    if (!r) {
        return;
    }
    reserve_leave(r->reserve);
    chain_deinit(&r->chain);
    for (uint32_t i = 0; i < r->rows_count; i++) {
        mem_free(r->rows[i].marks);
    }
    mem_free(r->rows);
    mem_free(r);
}

/* ---- marks ---- */

static struct row *row_of(struct log_reserve *r, uint16_t origin)
{
    if (origin >= r->rows_count) {
        uint32_t count = (uint32_t)origin + 1;
        r->rows = mem_realloc(r->rows, count * sizeof(*r->rows));
        memset(r->rows + r->rows_count, 0, (count - r->rows_count) * sizeof(*r->rows));
        r->rows_count = count;
    }
    return &r->rows[origin];
}

static void begin_behind(struct row *row, uint64_t sequence)
{
    row->gone = row->count = 0;
    row->next = sequence + 1;
}

/* Those of what is not kept any more go. */
static void drop_marks(struct log_reserve *r, struct row *row)
{
    struct reserve_facts facts;
    reserve_look(r->reserve, &facts);
    while (row->gone < row->count && row->marks[row->gone].position < facts.begin) {
        row->gone++;
    }
    if (row->gone > row->count / 2) {
        row->count -= row->gone;
        memmove(row->marks, row->marks + row->gone, row->count * sizeof(*row->marks));
        row->gone = 0;
    }
}

static void mark(struct log_reserve *r, struct row *row, uint64_t sequence)
{
    uint64_t position = r->chain.end;
    if (row->count > row->gone && position - row->marks[row->count - 1].position < MARK_BYTES) {
        return;
    }
    drop_marks(r, row);
    if (row->count == row->capacity) {
        row->capacity = row->capacity ? 2 * row->capacity : 4;
        row->marks = mem_realloc(row->marks, row->capacity * sizeof(*row->marks));
    }
    row->marks[row->count++] = (struct mark){sequence, position};
}

bool log_reserve_find(struct log_reserve *r, uint16_t origin, uint64_t sequence,
                      struct reserve_place *place)
{
    if (origin >= r->rows_count) {
        return false;
    }
    const struct row *row = &r->rows[origin];
    uint32_t low = row->gone, high = row->count; /* the first mark above is in [low, high] */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (row->marks[middle].sequence <= sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > row->gone && sequence < row->next &&
           reserve_place_at(r->reserve, row->marks[low - 1].position, place);
}

/* ---- records ---- */

void log_reserve_put(struct log_reserve *r, const struct unit *unit)
{
    uint64_t sequence = dot_sequence(unit->dot);
    struct row *row = row_of(r, dot_origin(unit->dot));
    if (row->next != sequence) {
        begin_behind(row, sequence - 1);
    }
    if (unit->len > LOG_RESERVE_UNIT_MAX) {
        begin_behind(row, sequence);
        return;
    }
    mark(r, row, sequence);
    row->next = sequence + 1;
    struct head head = {.stamp = unit->dot.stamp,
                        .place = unit->dot.place,
                        .len = unit->len,
                        .db = unit->db,
                        .has_causes = unit->has_causes};
    chain_append(&r->chain, slice_of((const char *)&head, sizeof(head)));
    chain_append(&r->chain, slice_of(unit->bytes, unit->len));
    reserve_note(r->reserve, &r->chain);
}

void log_reserve_skip(struct log_reserve *r, uint16_t origin, uint64_t position)
{
    begin_behind(row_of(r, origin), position);
}

void log_reserve_look(struct log_reserve *r, struct reserve_facts *facts)
{
    reserve_look(r->reserve, facts);
}

uint64_t log_reserve_end(struct log_reserve *r)
{
    struct reserve_facts facts;
    reserve_look(r->reserve, &facts);
    return facts.end;
}

/* ---- reading ---- */

/* The head of the first record; bytes of all of it, UINT64_MAX: it can be none. */
static uint64_t read_head(const char *at, struct head *head)
{
    memcpy(head, at, sizeof(*head));
    return head->len <= LOG_RESERVE_UNIT_MAX ? HEAD_BYTES + head->len : UINT64_MAX;
}

int log_reserve_read(struct log_reserve *r, struct reserve_place *place, struct buf *raw)
{
    size_t wanted = READ_BYTES;
    if (raw->len >= HEAD_BYTES) {
        struct head head;
        uint64_t whole = read_head(raw->data, &head);
        if (whole == UINT64_MAX) {
            return -1; /* it was checked: so never */
        }
        if (whole > raw->len && whole - raw->len > wanted) {
            wanted = (size_t)(whole - raw->len);
        }
    }
    ssize_t got = reserve_read(r->reserve, place, buf_reserve(raw, wanted), wanted);
    if (got > 0) {
        raw->len += (size_t)got;
    }
    return got > 0 ? 1 : (int)got;
}

bool log_record_take(struct slice *raw, struct log_record *record)
{
    if (raw->len < HEAD_BYTES) {
        return false;
    }
    struct head head;
    uint64_t bytes = read_head(raw->ptr, &head);
    if (bytes > raw->len) {
        return false;
    }
    *record = (struct log_record){
        .dot = {head.stamp, head.place},
        .db = head.db,
        .has_causes = head.has_causes,
        .commands = slice_of(raw->ptr + HEAD_BYTES, (size_t)bytes - HEAD_BYTES),
    };
    *raw = slice_of(raw->ptr + bytes, raw->len - (size_t)bytes);
    return true;
}
