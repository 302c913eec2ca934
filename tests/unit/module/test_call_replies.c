/* Replies of calls as modules take them apart, and strings of modules: through the functions that
 * modules find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "module/call_replies.h"
#include "module/context.h"
#include "module/text.h"

#include <limits.h>
#include <string.h>

/* A function of the table, with its type. */
#define RM(name) ((api_##name##_fn *)api_find("RedisModule_" #name))

static RedisModuleCtx ctx;

static int setup(void **state)
{
    (void)state;
    api_setup();
    memset(&ctx, 0, sizeof(ctx));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    api_teardown();
    return 0;
}

static RedisModuleCallReply *make(const char *resp)
{
    struct reply r;
    reply_init(&r);
    reply_begin(&r, 3);
    reply_raw(&r, slice_cstr(resp));
    reply_end(&r);
    RedisModuleCallReply *reply = call_reply_create(&ctx, &r);
    reply_deinit(&r);
    return reply;
}

static void assert_text(RedisModuleCallReply *r, const char *text)
{
    size_t len;
    const char *bytes = RM(CallReplyStringPtr)(r, &len);
    assert_non_null(bytes);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(bytes, text, len);
    assert_int_equal(RM(CallReplyLength)(r), len);
}

/* Modules look for words in it (strstr), which ends with the reply at the latest. */
static void test_text_that_ends(void **state)
{
    (void)state;
    size_t len;
    RedisModuleCallReply *r = make("$3\r\nabc\r\n");
    assert_string_equal(RM(CallReplyStringPtr)(r, &len), "abc\r\n");
    assert_string_equal(RM(CallReplyProto)(r, &len), "$3\r\nabc\r\n");
    assert_int_equal(len, 9);
    RM(FreeCallReply)(r);
    r = call_reply_create_error(&ctx, SLICE("ERR a"));
    assert_string_equal(RM(CallReplyStringPtr)(r, &len), "ERR a\r\n");
    RM(FreeCallReply)(r);
}

static void test_scalars(void **state)
{
    (void)state;
    RedisModuleCallReply *r = make("+status\r\n");
    assert_int_equal(RM(CallReplyType)(r), REDISMODULE_REPLY_STRING);
    assert_text(r, "status");
    RM(FreeCallReply)(r);
    r = make("-ERR no\r\n");
    assert_int_equal(RM(CallReplyType)(r), REDISMODULE_REPLY_ERROR);
    assert_text(r, "ERR no");
    RM(FreeCallReply)(r);
    r = make(":-17\r\n");
    assert_int_equal(RM(CallReplyInteger)(r), -17);
    RedisModuleString *s = RM(CreateStringFromCallReply)(r);
    assert_string_equal(RM(StringPtrLen)(s, NULL), "-17");
    RM(FreeString)(NULL, s);
    assert_null(RM(CallReplyStringPtr)(r, NULL));
    assert_int_equal(RM(CallReplyBool)(r), INT_MIN);
    RM(FreeCallReply)(r);
    const char *nulls[] = {"_\r\n", "$-1\r\n", "*-1\r\n"};
    for (int i = 0; i < 3; i++) {
        r = make(nulls[i]);
        assert_int_equal(RM(CallReplyType)(r), REDISMODULE_REPLY_NULL);
        assert_null(RM(CreateStringFromCallReply)(r));
        RM(FreeCallReply)(r);
    }
    assert_int_equal(RM(CallReplyType)(NULL), REDISMODULE_REPLY_UNKNOWN);
    RM(FreeCallReply)(NULL);
}

static void test_resp3_scalars(void **state)
{
    (void)state;
    size_t len;
    const char *format;
    RedisModuleCallReply *r = make(",-1.25\r\n");
    assert_true(RM(CallReplyDouble)(r) == -1.25);
    RM(FreeCallReply)(r);
    r = make("#t\r\n");
    assert_int_equal(RM(CallReplyBool)(r), 1);
    assert_int_equal(RM(CallReplyInteger)(r), LLONG_MIN);
    RM(FreeCallReply)(r);
    r = make("(12345678901234567890\r\n");
    assert_memory_equal(RM(CallReplyBigNumber)(r, &len), "12345678901234567890", 20);
    assert_int_equal(len, 20);
    RM(FreeCallReply)(r);
    r = make("=7\r\nmkd:# t\r\n");
    assert_int_equal(RM(CallReplyType)(r), REDISMODULE_REPLY_VERBATIM_STRING);
    assert_memory_equal(RM(CallReplyVerbatim)(r, &len, &format), "# t", 3);
    assert_int_equal(len, 3);
    assert_memory_equal(format, "mkd", 3);
    RM(FreeCallReply)(r);
}

static void test_nested(void **state)
{
    (void)state;
    static const char text[] =
        "*3\r\n:1\r\n%2\r\n+a\r\n~2\r\n$1\r\nx\r\n:5\r\n+b\r\n*0\r\n$3\r\nend\r\n";
    size_t len;
    RedisModuleCallReply *key, *value, *r = make(text);
    assert_int_equal(RM(CallReplyType)(r), REDISMODULE_REPLY_ARRAY);
    assert_int_equal(RM(CallReplyLength)(r), 3);
    assert_null(RM(CallReplyArrayElement)(r, 3));
    assert_null(RM(CallReplySetElement)(r, 0));
    assert_int_equal(RM(CallReplyInteger)(RM(CallReplyArrayElement)(r, 0)), 1);
    RedisModuleCallReply *map = RM(CallReplyArrayElement)(r, 1);
    assert_int_equal(RM(CallReplyLength)(map), 2);
    assert_int_equal(RM(CallReplyMapElement)(map, 0, &key, &value), REDISMODULE_OK);
    assert_text(key, "a");
    assert_int_equal(RM(CallReplyType)(value), REDISMODULE_REPLY_SET);
    assert_text(RM(CallReplySetElement)(value, 0), "x");
    assert_int_equal(RM(CallReplyInteger)(RM(CallReplySetElement)(value, 1)), 5);
    assert_int_equal(RM(CallReplyMapElement)(map, 1, NULL, &value), REDISMODULE_OK);
    assert_int_equal(RM(CallReplyLength)(value), 0);
    assert_int_equal(RM(CallReplyMapElement)(map, 2, &key, &value), REDISMODULE_ERR);
    assert_text(RM(CallReplyArrayElement)(r, 2), "end");
    const char *proto = RM(CallReplyProto)(map, &len);
    assert_memory_equal(proto, "%2\r\n+a\r\n~2", 10);
    assert_int_equal(len, strlen(text) - strlen("*3\r\n:1\r\n") - strlen("$3\r\nend\r\n"));
    RM(FreeCallReply)(map); /* a part: nothing is freed yet */
    assert_text(RM(CallReplyArrayElement)(r, 2), "end");
    RM(FreeCallReply)(r);
}

static void test_attribute(void **state)
{
    (void)state;
    size_t len;
    RedisModuleCallReply *key, *value, *r = make("|1\r\n+ttl\r\n:9\r\n$1\r\nv\r\n");
    assert_text(r, "v");
    RedisModuleCallReply *attribute = RM(CallReplyAttribute)(r);
    assert_non_null(attribute);
    assert_int_equal(RM(CallReplyAttributeElement)(attribute, 0, &key, &value), REDISMODULE_OK);
    assert_text(key, "ttl");
    assert_int_equal(RM(CallReplyInteger)(value), 9);
    RM(CallReplyProto)(r, &len);
    assert_int_equal(len, strlen("|1\r\n+ttl\r\n:9\r\n$1\r\nv\r\n"));
    RM(FreeCallReply)(r);
}

/* What the context looks after is freed with it: AddressSanitizer would tell. */
static void test_auto_memory(void **state)
{
    (void)state;
    RedisModuleCtx own;
    struct reply r;
    context_init_detached(&own, NULL);
    RM(AutoMemory)(&own);
    RedisModuleString *a = RM(CreateString)(&own, "one", 3);
    RedisModuleString *b = RM(CreateStringPrintf)(&own, "%d-%s", 5, "x");
    assert_string_equal(RM(StringPtrLen)(b, NULL), "5-x");
    reply_init(&r);
    reply_begin(&r, 2);
    reply_ok(&r);
    reply_end(&r);
    assert_non_null(call_reply_create(&own, &r));
    RM(FreeCallReply)(call_reply_create(&own, &r));
    reply_deinit(&r);
    RM(RetainString)(&own, a); /* ours now */
    assert_int_equal(own.owned_count, 2);
    for (int i = 0; i < 3 * CONTEXT_FEW; i++) { /* more than there is room for */
        assert_string_equal(RM(StringPtrLen)(RM(CreateString)(&own, "x", 1), NULL), "x");
    }
    context_free_owned(&own);
    context_deinit_detached(&own);
    RM(FreeString)(NULL, a);
}

static void test_append(void **state)
{
    (void)state;
    size_t len;
    RedisModuleString *s = RM(CreateString)(NULL, "", 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(RM(StringAppendBuffer)(NULL, s, "0123456789", 10), REDISMODULE_OK);
    }
    const char *bytes = RM(StringPtrLen)(s, &len);
    assert_int_equal(len, 10000);
    assert_int_equal(strlen(bytes), 10000);
    RM(TrimStringAllocation)(s);
    RedisModuleString *held = RM(HoldString)(NULL, s);
    assert_ptr_equal(held, s);
    assert_int_equal(RM(StringAppendBuffer)(NULL, s, "x", 1), REDISMODULE_ERR);
    RM(FreeString)(NULL, held);
    assert_int_equal(RM(StringAppendBuffer)(NULL, s, "x", 1), REDISMODULE_OK);
    assert_true(RM(MallocSizeString)(s) >= 10001);
    RM(FreeString)(NULL, s);
}

/* A large argument keeps its blob, with a NUL behind it, unless somebody else has it too. */
static void test_blob(void **state)
{
    (void)state;
    struct blob *b = blob_try_create(100002);
    assert_non_null(b);
    memset(b->bytes, 'a', 100002);
    b->len = 100000;
    RedisModuleString *s = text_create_argument(blob_slice(b), b);
    assert_ptr_equal(RM(StringPtrLen)(s, NULL), b->bytes);
    assert_int_equal(strlen(RM(StringPtrLen)(s, NULL)), 100000);
    RedisModuleString *copy = text_create_argument(blob_slice(b), b);
    assert_ptr_not_equal(RM(StringPtrLen)(copy, NULL), b->bytes);
    assert_int_equal(RM(StringAppendBuffer)(NULL, s, "!", 1), REDISMODULE_OK);
    assert_int_equal(b->len, 100000);
    blob_release(&b);
    assert_int_equal(RM(StringPtrLen)(s, NULL)[100000], '!');
    assert_int_equal(RM(StringCompare)(s, copy), 1);
    RM(FreeString)(NULL, s);
    RM(FreeString)(NULL, copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_that_ends), cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_resp3_scalars),  cmocka_unit_test(test_nested),
        cmocka_unit_test(test_attribute),      cmocka_unit_test(test_auto_memory),
        cmocka_unit_test(test_append),         cmocka_unit_test(test_blob),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
