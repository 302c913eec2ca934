/* cmsgpack, as the oracle answers: src/script/lib_cmsgpack.c.
 * Expected values are those of redis-server 7.0.15. */
#include "script/libraries_helper.h"

static const struct expression pack_rows[] = {
    {"cmsgpack.pack()",
     "false | user_script:1: bad argument #0 to 'pack' (MessagePack pack needs input.)"},
    {"cmsgpack.pack(1)", "true | \\001"},
    {"cmsgpack.pack(1,\"a\",nil,true,false)", "true | \\001\\161a\\192\\195\\194"},
    {"cmsgpack.pack(type)", "true | \\192"},
    {"cmsgpack.pack(cjson.null)", "true | \\192"},
    {"cmsgpack.pack({})", "true | \\144"},
    {"cmsgpack.pack({1,2})", "true | \\146\\001\\002"},
    {"cmsgpack.pack({1,2,nil,4})", "true | \\131\\001\\001\\002\\002\\004\\004"},
    {"cmsgpack.pack({[1.5]=1})", "true | \\129\\202?\\192\\000\\000\\001"},
    {"cmsgpack.pack({a=1})", "true | \\129\\161a\\001"},
    {"cmsgpack.pack({[0]=1})", "true | \\129\\000\\001"},
    {"cmsgpack.pack({[-1]=1})", "true | \\129\\255\\001"},
    {"cmsgpack.pack({[2]=1})", "true | \\129\\002\\001"},
    {"cmsgpack.pack({[true]={}})", "true | \\129\\195\\144"},
    {"cmsgpack.pack({1,a=2})", "true | \\130\\001\\001\\161a\\002"},
    {"cmsgpack.pack(0.5,0.1,1/0,-1/0,0/0)",
     "true | "
     "\\202?\\000\\000\\000\\203?"
     "\\185\\153\\153\\153\\153\\153\\154\\202\\127\\128\\000\\000\\202\\255\\128\\000\\000\\203\\2"
     "55\\248\\000\\000\\000\\000\\000\\000"},
    {"cmsgpack.pack(127,128,255,256,65535,65536,4294967295,4294967296,2^53,2^63,2^64)",
     "true | "
     "\\127\\204\\128\\204\\255\\205\\001\\000\\205\\255\\255\\206\\000\\001\\000\\000\\206\\255\\2"
     "55\\255\\255\\207\\000\\000\\000\\001\\000\\000\\000\\000\\207\\000 "
     "\\000\\000\\000\\000\\000\\000\\202_\\000\\000\\000\\202_\\128\\000\\000"},
    {"cmsgpack.pack(-1,-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649,-2^63,-2^63*2)",
     "true | "
     "\\255\\224\\208\\223\\208\\128\\209\\255\\127\\209\\128\\000\\210\\255\\255\\127\\255\\210\\1"
     "28\\000\\000\\000\\211\\255\\255\\255\\255\\127\\255\\255\\255\\211\\128\\000\\000\\000\\000"
     "\\000\\000\\000\\202\\223\\128\\000\\000"},
    {"cmsgpack.pack(-0.0)", "true | \\000"},
    {"#cmsgpack.pack(string.rep(\"a\",31)), cmsgpack.pack(string.rep(\"a\",32)):sub(1,4), "
     "cmsgpack.pack(string.rep(\"a\",256)):sub(1,4), "
     "cmsgpack.pack(string.rep(\"a\",65536)):sub(1,5)",
     "true | 32 | \\217 aa | \\218\\001\\000a | \\219\\000\\001\\000\\000"},
    {"local t={} for i=1,15 do t={t} end return cmsgpack.pack(t)",
     "true | \\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\144"},
    {"local t={} for i=1,16 do t={t} end return cmsgpack.pack(t)",
     "true | "
     "\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\192"},
    {"local t={} for i=1,20 do t={t} end return cmsgpack.pack(t)",
     "true | "
     "\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\145\\192"},
    {"local t={} for i=1,16 do t={a=t} end return cmsgpack.pack(t)",
     "true | "
     "\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129"
     "\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\129\\161a\\192"},
    {"local t={} for i=1,16 do t[i]=i end return cmsgpack.pack(t):sub(1,5)",
     "true | \\220\\000\\016\\001\\002"},
    {"local t={} for i=1,70000 do t[i]=i end return cmsgpack.pack(t):sub(1,7)",
     "true | \\221\\000\\001\\017p\\001\\002"},
    {"local t={} for i=1,16 do t[\"k\"..i]=i end return cmsgpack.pack(t):sub(1,3)",
     "true | \\222\\000\\016"},
};

static const struct expression unpack_rows[] = {
    {"cmsgpack.unpack(\"\\147\\1\\2\\3\")", "true | {1=1 2=2 3=3}"},
    {"cmsgpack.unpack(\"\\1\\2\\3\")", "true | 1 | 2 | 3"},
    {"cmsgpack.unpack(\"\")", "true"},
    {"cmsgpack.unpack(\"\\193\")", "false | user_script:1: Bad data format in input."},
    {"cmsgpack.unpack(\"\\199\\1\\1\\1\")", "false | user_script:1: Bad data format in input."},
    {"cmsgpack.unpack(\"\\212\\1\\1\")", "false | user_script:1: Bad data format in input."},
    {"cmsgpack.unpack(\"\\196\\3abc\")", "false | user_script:1: Bad data format in input."},
    {"cmsgpack.unpack(\"\\217\\3abc\\218\\0\\3abc\\219\\0\\0\\0\\3abc\\163abc\")",
     "true | abc | abc | abc | abc"},
    {"cmsgpack.unpack(\"\\219\\255\\255\\255\\255abc\")",
     "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack(\"\\221\\255\\255\\255\\255abc\")",
     "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack(\"\\223\\255\\255\\255\\255abc\")",
     "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack(\"\\204\")", "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack(\"\\205\\1\")", "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack(\"\\163ab\")", "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack(\"\\146\\1\")", "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack(\"\\129\\1\")", "false | user_script:1: Missing bytes in input."},
    {"cmsgpack.unpack("
     "\"\\204\\255\\205\\255\\255\\206\\255\\255\\255\\255\\207\\255\\255\\255\\255\\255\\255\\255"
     "\\255\")",
     "true | 255 | 65535 | 4294967295 | -1"},
    {"cmsgpack.unpack("
     "\"\\208\\255\\209\\255\\254\\210\\255\\255\\255\\253\\211\\255\\255\\255\\255\\255\\255\\255"
     "\\252\")",
     "true | -1 | -2 | -3 | -4"},
    {"cmsgpack.unpack(\"\\202\\63\\0\\0\\0\\203\\63\\224\\0\\0\\0\\0\\0\\0\\192\\194\\195\\224\")",
     "true | 0.5 | 0.5 | nil | false | true | -32"},
    {"cmsgpack.unpack(\"\\129\\192\\1\")", "false | table index is nil"},
    {"cmsgpack.unpack(\"\\129\\202\\127\\192\\0\\0\\1\")", "false | table index is NaN"},
    {"cmsgpack.unpack(\"\\129\\161a\\192\")", "true | {}"},
    {"cmsgpack.unpack(\"\\146\\192\\1\")", "true | {2=1}"},
    {"cmsgpack.unpack(\"\\222\\0\\1\\1\\2\\220\\0\\1\\7\")", "true | {1=2} | {1=7}"},
    {"cmsgpack.unpack(5)", "true | 53"},
    {"cmsgpack.unpack()",
     "false | user_script:1: bad argument #1 to 'unpack' (string expected, got no value)"},
    {"cmsgpack.unpack({})",
     "false | user_script:1: bad argument #1 to 'unpack' (string expected, got table)"},
    {"cmsgpack.unpack_one(\"\\1\\2\\3\")", "true | 1 | 1"},
    {"cmsgpack.unpack_one(\"\\1\\2\\3\",1)", "true | 2 | 2"},
    {"cmsgpack.unpack_one(\"\\1\\2\\3\",2)", "true | -1 | 3"},
    {"cmsgpack.unpack_one(\"\\1\\2\\3\",3)", "true | -1"},
    {"cmsgpack.unpack_one(\"\\1\\2\\3\",4)",
     "false | user_script:1: Start offset 4 greater than input length 3."},
    {"cmsgpack.unpack_one(\"\\1\\2\\3\",-1)",
     "false | user_script:1: Invalid request to unpack with offset of -1 and limit of 3."},
    {"cmsgpack.unpack_one(\"\")", "true | -1"},
    {"cmsgpack.unpack_limit(\"\\1\\2\\3\",2)", "true | 2 | 1 | 2"},
    {"cmsgpack.unpack_limit(\"\\1\\2\\3\",2,1)", "true | -1 | 2 | 3"},
    {"cmsgpack.unpack_limit(\"\\1\\2\\3\",0)", "true | 1 | 2 | 3"},
    {"cmsgpack.unpack_limit(\"\\1\\2\\3\",-1)",
     "false | user_script:1: Invalid request to unpack with offset of 0 and limit of 3."},
    {"cmsgpack.unpack_limit(\"\\1\\2\\3\",5)", "true | -1 | 1 | 2 | 3"},
    {"cmsgpack.unpack_limit(\"\\1\\2\\3\",1,7)",
     "false | user_script:1: Start offset 7 greater than input length 3."},
    {"cmsgpack.unpack_limit(\"\\1\\2\\3\")",
     "false | user_script:1: bad argument #2 to 'unpack_limit' (number expected, got no value)"},
    {"#cmsgpack.pack(unpack({},1,3000))", "true | 3000"},
    {"select('#',cmsgpack.unpack(string.rep(\"\\1\",7000)))", "true | 7000"},
    {"select('#',cmsgpack.unpack(string.rep(\"\\1\",9000)))",
     "false | user_script:1: stack overflow (too many return values at once; use unpack_one or "
     "unpack_limit instead.)"},
    {"type(cmsgpack.unpack(string.rep(\"\\145\",1000)..\"\\1\"))", "true | table"},
};

static void test_pack(void **state)
{
    (void)state;
    CHECK_ROWS_IN_EACH_STATE(pack_rows);
}

static void test_unpack(void **state)
{
    (void)state;
    CHECK_ROWS_IN_EACH_STATE(unpack_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_unpack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
