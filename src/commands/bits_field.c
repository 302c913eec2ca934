/* BITFIELD and BITFIELD_RO: a string as an array of integers of any width. The arguments are gone
 * through twice, once to check all of them and to see how long the string must be, once to run
 * them: so a fault in the last operation leaves the first one undone. */
#include "commands/bits_priv.h"
#include "commands/commands.h"
#include "commands/reads_priv.h"
#include "commands/string_bytes.h"

#include "base/num.h"
#include "ds/bits.h"
#include "value/string.h"

enum field_action { FIELD_GET, FIELD_SET, FIELD_INCRBY };

struct field_operation {
    enum field_action action;
    enum bits_overflow overflow;
    bool is_signed;
    unsigned width;
    uint64_t offset;
    int64_t number; /* to be set or added */
};

/* "i16", "u8". */
static bool parse_type(struct call *c, int arg, struct field_operation *op)
{
    struct slice text = c->argv[arg];
    int64_t width;
    bool known = text.len > 1 && (text.ptr[0] == 'i' || text.ptr[0] == 'u');
    op->is_signed = known && text.ptr[0] == 'i';
    if (!known || !num_parse_i64(slice_of(text.ptr + 1, text.len - 1), &width) || width < 1 ||
        width > (op->is_signed ? 64 : 63)) {
        reply_error(c->reply, "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 "
                              "is not supported but i64 is.");
        return false;
    }
    op->width = (unsigned)width;
    return true;
}

static bool parse_overflow(struct call *c, int arg, enum bits_overflow *overflow)
{
    if (call_arg_is(c, arg, "wrap")) {
        *overflow = BITS_OVERFLOW_WRAP;
    } else if (call_arg_is(c, arg, "sat")) {
        *overflow = BITS_OVERFLOW_SATURATE;
    } else if (call_arg_is(c, arg, "fail")) {
        *overflow = BITS_OVERFLOW_FAIL;
    } else {
        reply_error(c->reply, "ERR Invalid OVERFLOW type specified");
        return false;
    }
    return true;
}

/* Reads the OVERFLOW words from argument *arg on; true unless one is wrong (replied). */
static bool skip_overflow(struct call *c, int *arg, enum bits_overflow *overflow)
{
    while (*arg + 1 < c->argc && call_arg_is(c, *arg, "overflow")) {
        if (!parse_overflow(c, *arg + 1, overflow)) {
            return false;
        }
        *arg += 2;
    }
    return true;
}

/* Reads the operation at argument *arg (*arg < argc) and moves *arg behind it. False with an error
 * replied. */
static bool parse_operation(struct call *c, int *arg, struct field_operation *op)
{
    int more = c->argc - *arg - 1;
    if (call_arg_is(c, *arg, "get") && more >= 2) {
        op->action = FIELD_GET;
    } else if (call_arg_is(c, *arg, "set") && more >= 3) {
        op->action = FIELD_SET;
    } else if (call_arg_is(c, *arg, "incrby") && more >= 3) {
        op->action = FIELD_INCRBY;
    } else {
        reply_syntax_error(c->reply);
        return false;
    }
    if (!parse_type(c, *arg + 1, op) || !bits_parse_offset(c, *arg + 2, op->width, &op->offset) ||
        (op->action != FIELD_GET && !call_arg_i64(c, *arg + 3, &op->number))) {
        return false;
    }
    *arg += op->action == FIELD_GET ? 3 : 4;
    return true;
}

/* What all operations of a request need. */
struct field_plan {
    uint64_t count;
    bool writes;
    uint64_t last_bit; /* highest bit that is written */
};

static bool make_plan(struct call *c, struct field_plan *plan)
{
    struct field_operation op = {.overflow = BITS_OVERFLOW_WRAP};
    *plan = (struct field_plan){0};
    int arg = 2;
    while (skip_overflow(c, &arg, &op.overflow)) {
        if (arg == c->argc) {
            return true;
        }
        if (!parse_operation(c, &arg, &op)) {
            return false;
        }
        plan->count++;
        if (op.action != FIELD_GET) {
            uint64_t last = op.offset + op.width - 1;
            plan->writes = true;
            plan->last_bit = last > plan->last_bit ? last : plan->last_bit;
        }
    }
    return false;
}

/* The string that the operations work on. */
struct field_string {
    uint8_t *bytes; /* written to only by operations that write */
    size_t len;
    bool grew;
    uint64_t changes;
};

static int64_t field_get(const struct field_string *s, const struct field_operation *op)
{
    uint64_t field = bits_get_field(s->bytes, s->len, op->offset, op->width);
    return op->is_signed ? bits_sign_extend(field, op->width) : (int64_t)field;
}

/* What the operation would store; false when it does not fit the field. */
static bool field_compute(const struct field_operation *op, int64_t before, int64_t *after)
{
    int64_t base = op->action == FIELD_SET ? op->number : before;
    int64_t increment = op->action == FIELD_SET ? 0 : op->number;
    if (op->is_signed) {
        return bits_add_signed(base, increment, op->width, op->overflow, after);
    }
    uint64_t sum;
    bool fits = bits_add_unsigned((uint64_t)base, increment, op->width, op->overflow, &sum);
    *after = (int64_t)sum;
    return fits;
}

static void run_operation(struct call *c, struct field_string *s, const struct field_operation *op)
{
    int64_t before = field_get(s, op), after;
    if (op->action == FIELD_GET) {
        reply_i64(c->reply, before);
        return;
    }
    if (!field_compute(op, before, &after) && op->overflow == BITS_OVERFLOW_FAIL) {
        reply_null(c->reply);
        return;
    }
    bits_set_field(s->bytes, op->offset, op->width, (uint64_t)after);
    s->changes += s->grew || before != after;
    reply_i64(c->reply, op->action == FIELD_SET ? before : after);
}

static void run_operations(struct call *c, const struct field_plan *plan, struct field_string *s)
{
    struct field_operation op = {.overflow = BITS_OVERFLOW_WRAP};
    int arg = 2;
    reply_array(c->reply, plan->count);
    for (uint64_t i = 0; i < plan->count; i++) {
        bool checked = skip_overflow(c, &arg, &op.overflow) && parse_operation(c, &arg, &op);
        assert(checked);
        (void)checked;
        run_operation(c, s, &op);
    }
}

/* The string of a request that only reads. */
static struct field_string view_of(const struct entry *e, char *scratch)
    REQUIRES_SHARED(keyspace_lock)
{
    struct slice all = e ? string_view(e, scratch) : SLICE("");
    return (struct field_string){.bytes = (uint8_t *)(uintptr_t)all.ptr, .len = all.len};
}

static void write_fields(struct call *c, const struct field_plan *plan, struct keyref *ref)
    REQUIRES(keyspace_lock)
{
    struct field_string s = {.len = bits_len_for(ref, plan->last_bit)};
    s.grew = !ref->entry || s.len > string_len(ref->entry);
    s.bytes = string_bytes_open(c, ref, s.len);
    if (!s.bytes) {
        return;
    }
    run_operations(c, plan, &s);
    /* A string that only grew has changed too (OVERFLOW FAIL on a missing key leaves zeros). Redis
     * does not count that, and its replicas and its AOF never hear of the key. */
    if (s.changes > 0 || s.grew) {
        call_changed(c, ref, EVENT_STRING, "setbit");
        c->dirty += s.changes > 1 ? s.changes - 1 : 0;
    }
}

WRITE_COMMAND(bitfield_command)
{
    struct field_plan plan;
    struct keyref ref;
    char scratch[STRING_VIEW_BYTES];
    if (!make_plan(c, &plan) || !call_open_typed(c, 0, VALUE_STRING, &ref)) {
        return;
    }
    if (plan.writes) {
        write_fields(c, &plan, &ref);
        return;
    }
    reads_count(&ref);
    struct field_string s = view_of(ref.entry, scratch);
    run_operations(c, &plan, &s);
}

READ_COMMAND(bitfield_ro_command)
{
    struct field_plan plan;
    struct entry *e;
    char scratch[STRING_VIEW_BYTES];
    if (!make_plan(c, &plan)) {
        return;
    }
    if (plan.writes) {
        reply_error(c->reply, "ERR BITFIELD_RO only supports the GET subcommand");
        return;
    }
    if (call_read_typed(c, 0, VALUE_STRING, &e)) {
        struct field_string s = view_of(e, scratch);
        run_operations(c, &plan, &s);
    }
}

const struct command_row bit_field_commands[] = {
    {.name = "bitfield",
     .run = bitfield_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CATEGORY_BITMAP,
     .keys = "i1/r0,1,0/RW+UPDATE+ACCESS+VARIABLE_FLAGS",
     .group = "bitmap",
     .since = "3.2.0",
     .summary = "Reads, sets and adds to integers of any width that stand in a string.",
     .complexity = "O(1) for each operation",
     .args = "key [GET encoding offset|[OVERFLOW WRAP|SAT|FAIL] <SET encoding offset value|INCRBY "
             "encoding offset increment> [GET encoding offset|[OVERFLOW WRAP|SAT|FAIL] <SET "
             "encoding offset value|INCRBY encoding offset increment> ...]]"},
    {.name = "bitfield_ro",
     .run = bitfield_ro_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST,
     .categories = CATEGORY_BITMAP,
     .keys = "i1/r0,1,0/RO+ACCESS",
     .group = "bitmap",
     .since = "6.0.0",
     .summary = "Reads integers of any width that stand in a string.",
     .complexity = "O(1) for each operation",
     .args = "key [GET encoding offset [GET encoding offset ...]]"},
    {.name = NULL},
};
