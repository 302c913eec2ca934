/* See field.h. */
#include "base/field.h"

#include "base/num.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define DECIMALS_MAX 9
/* Sign, digits, point. */
#define VALUE_MAX_BYTES 32
/* Below it a double holds whole numbers exactly. */
#define EXACT_BELOW 9e15

static const uint64_t powers[DECIMALS_MAX + 1] = {1,      10,      100,      1000,      10000,
                                                  100000, 1000000, 10000000, 100000000, 1000000000};

/* Appends `before` and `between`, and returns room for a value and the end of a line. */
static char *begin(struct buf *out, const char *before, const char *between)
{
    size_t len = strlen(before), more = strlen(between);
    char *at = buf_reserve(out, len + more + VALUE_MAX_BYTES + 2);
    memcpy(at, before, len);
    memcpy(at + len, between, more);
    out->len += len + more;
    return at + len + more;
}

static void end_line(struct buf *out)
{
    memcpy(buf_reserve(out, 2), "\r\n", 2);
    out->len += 2;
}

static void put_fixed(struct buf *out, double value, unsigned decimals)
{
    char *at = out->data + out->len, *start = at;
    assert(decimals <= DECIMALS_MAX);
    double scaled = fabs(value) * (double)powers[decimals] + 0.5;
    if (!(scaled < EXACT_BELOW)) {
        buf_printf(out, "%.*f", (int)decimals, value);
        return;
    }
    uint64_t all = (uint64_t)scaled;
    if (signbit(value)) {
        *at++ = '-';
    }
    at += num_format_u64(at, all / powers[decimals]);
    if (decimals > 0) {
        uint64_t rest = all % powers[decimals];
        *at++ = '.';
        for (unsigned i = decimals; i-- > 0; rest /= 10) {
            at[i] = (char)('0' + rest % 10);
        }
        at += decimals;
    }
    out->len += (size_t)(at - start);
}

void field_text(struct buf *out, const char *name, const char *text)
{
    begin(out, name, ":");
    buf_append_cstr(out, text);
    end_line(out);
}

void field_u64(struct buf *out, const char *name, uint64_t value)
{
    char *at = begin(out, name, ":");
    out->len += num_format_u64(at, value);
    end_line(out);
}

void field_i64(struct buf *out, const char *name, int64_t value)
{
    char *at = begin(out, name, ":");
    out->len += num_format_i64(at, value);
    end_line(out);
}

void field_fixed(struct buf *out, const char *name, double value, unsigned decimals)
{
    begin(out, name, ":");
    put_fixed(out, value, decimals);
    end_line(out);
}

void field_part_u64(struct buf *out, const char *before, uint64_t value)
{
    char *at = begin(out, before, "");
    out->len += num_format_u64(at, value);
}

void field_part_i64(struct buf *out, const char *before, int64_t value)
{
    char *at = begin(out, before, "");
    out->len += num_format_i64(at, value);
}

void field_part_fixed(struct buf *out, const char *before, double value, unsigned decimals)
{
    begin(out, before, "");
    put_fixed(out, value, decimals);
}

void field_part_text(struct buf *out, const char *before, const char *text)
{
    begin(out, before, "");
    buf_append_cstr(out, text);
}
