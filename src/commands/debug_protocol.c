/* DEBUG PROTOCOL: replies a value of the type asked for, so that client libraries can test their
 * readers. The values are those that such test suites expect. */
#include "commands/debug_priv.h"

struct debug_sample {
    const char *type;
    void (*reply)(struct reply *r);
};

static void sample_string(struct reply *r)
{
    reply_bulk_cstr(r, "Hello World");
}

static void sample_integer(struct reply *r)
{
    reply_i64(r, 12345);
}

static void sample_double(struct reply *r)
{
    reply_double(r, 3.141);
}

static void sample_null(struct reply *r)
{
    reply_null(r);
}

static void sample_array(struct reply *r)
{
    reply_array(r, 3);
    for (int i = 0; i < 3; i++) {
        reply_i64(r, i);
    }
}

static void sample_set(struct reply *r)
{
    reply_set(r, 3);
    for (int i = 0; i < 3; i++) {
        reply_i64(r, i);
    }
}

static void sample_map(struct reply *r)
{
    reply_map(r, 3);
    for (int i = 0; i < 3; i++) {
        reply_i64(r, i);
        reply_bool(r, i == 1);
    }
}

/* Only RESP3 has attributes; what they stand before is there for both. */
static void sample_attribute(struct reply *r)
{
    if (r->proto == 3) {
        reply_attribute(r, 1);
        reply_bulk_cstr(r, "key-popularity");
        reply_array(r, 2);
        reply_bulk_cstr(r, "key:123");
        reply_i64(r, 90);
    }
    reply_bulk_cstr(r, "Some real reply following the attribute");
}

static void sample_push(struct reply *r)
{
    if (r->proto == 2) {
        reply_error(r, "ERR RESP2 is not supported by this command");
        return;
    }
    reply_push(r, 2);
    reply_bulk_cstr(r, "server-cpu-usage");
    reply_i64(r, 42);
    reply_bulk_cstr(r, "Some real reply following the push reply");
}

static void sample_verbatim(struct reply *r)
{
    reply_verbatim(r, "txt", SLICE("This is a verbatim\nstring"));
}

static void sample_true(struct reply *r)
{
    reply_bool(r, true);
}

static void sample_false(struct reply *r)
{
    reply_bool(r, false);
}

static void sample_bignum(struct reply *r)
{
    reply_big_number(r, SLICE("1234567999999999999999999999999999999"));
}

static const struct debug_sample debug_samples[] = {
    {"string", sample_string}, {"integer", sample_integer},   {"double", sample_double},
    {"bignum", sample_bignum}, {"null", sample_null},         {"array", sample_array},
    {"set", sample_set},       {"map", sample_map},           {"attrib", sample_attribute},
    {"push", sample_push},     {"verbatim", sample_verbatim}, {"true", sample_true},
    {"false", sample_false},
};

void debug_protocol(struct call *c)
{
    for (size_t i = 0; i < sizeof(debug_samples) / sizeof(debug_samples[0]); i++) {
        if (call_arg_is(c, 2, debug_samples[i].type)) {
            debug_samples[i].reply(c->reply);
            return;
        }
    }
    reply_error(c->reply,
                "ERR Wrong protocol type name. Please use one of the following: string|integer|"
                "double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}
