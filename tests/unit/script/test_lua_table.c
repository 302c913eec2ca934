/* Lua's other functions, as the oracle answers: src/script/lib_base.c, lib_table.c.
 * Expected values are those of redis-server 7.0.15. */
#include "script/libraries_helper.h"

static const struct expression others_rows[] = {
    {"unpack({1,2,3})", "true | 1 | 2 | 3"},
    {"unpack({1,2,3},2)", "true | 2 | 3"},
    {"unpack({1,2,3},2,5)", "true | 2 | 3"},
    {"unpack({},3,1)", "true"},
    {"unpack({},1,8000)", "false | user_script:1: too many results to unpack"},
    {"unpack({},-2147483648,2147483647)", "false | user_script:1: too many results to unpack"},
    {"select('#',unpack({},1,7900))", "true | 7900"},
    {"unpack()",
     "false | user_script:1: bad argument #1 to 'unpack' (table expected, got no value)"},
    {"unpack(5)",
     "false | user_script:1: bad argument #1 to 'unpack' (table expected, got number)"},
    {"local t={1,2,3} table.insert(t,4) return unpack(t)", "true | 1 | 2 | 3 | 4"},
    {"local t={1,2,3} table.insert(t,1,0) return unpack(t)", "true | 0 | 1 | 2 | 3"},
    {"local t={1,2,3} table.insert(t,0,5) return t[0],unpack(t)", "true | 5 | nil | 1 | 2 | 3"},
    {"local t={1,2,3} table.insert(t,-2,5) return t[-2],t[-1],t[0],unpack(t)",
     "true | 5 | nil | nil | nil | 1 | 2 | 3"},
    {"local t={1,2,3} table.insert(t,6,5) return t[4],t[5],t[6]", "true | nil | nil | 5"},
    {"table.insert({},1,2,3)", "false | user_script:1: wrong number of arguments to 'insert'"},
    {"table.insert({})", "false | user_script:1: wrong number of arguments to 'insert'"},
    {"table.insert(5,1)",
     "false | user_script:1: bad argument #1 to 'insert' (table expected, got number)"},
    {"table.insert({1},\"x\",2)",
     "false | user_script:1: bad argument #2 to 'insert' (number expected, got string)"},
    {"local t={1,2,3} return "
     "table.remove(t),table.remove(t,1),#t,table.remove({}),table.remove(t,7)",
     "true | 3 | 1 | 1"},
    {"table.concat({1,2,3})", "true | 123"},
    {"table.concat({1,\"a\",2.5},\", \")", "true | 1, a, 2.5"},
    {"table.concat({1,2,3},\",\",2)", "true | 2,3"},
    {"table.concat({1,2,3},\",\",2,3)", "true | 2,3"},
    {"table.concat({1,2,3},\",\",3,2)", "true | "},
    {"table.concat({1,2,3},\",\",3,4)",
     "false | user_script:1: invalid value (nil) at index 4 in table for 'concat'"},
    {"table.concat({1,2,{}})",
     "false | user_script:1: invalid value (table) at index 3 in table for 'concat'"},
    {"table.concat({})", "true | "},
    {"table.concat({},\"x\",1,0)", "true | "},
    {"table.concat({1,2},5)", "true | 152"},
    {"table.concat({1,2},{})",
     "false | user_script:1: bad argument #2 to 'concat' (string expected, got table)"},
    {"table.concat({1},\",\",-1,1)",
     "false | user_script:1: invalid value (nil) at index -1 in table for 'concat'"},
    {"table.concat(5)",
     "false | user_script:1: bad argument #1 to 'concat' (table expected, got number)"},
    {"local t={3,1,2} table.sort(t) return unpack(t)", "true | 1 | 2 | 3"},
    {"local t={\"b\",\"a\",\"c\"} table.sort(t,function(a,b) return a>b end) return unpack(t)",
     "true | c | b | a"},
    {"table.sort({1,\"x\"})", "false | attempt to compare string with number"},
    {"table.sort({1,{}})", "false | attempt to compare table with number"},
    {"table.sort({},5)",
     "false | user_script:1: bad argument #2 to 'sort' (function expected, got number)"},
    {"table.sort(5)",
     "false | user_script:1: bad argument #1 to 'sort' (table expected, got number)"},
    {"local t={3,1,2} table.sort(t,nil) return unpack(t)", "true | 1 | 2 | 3"},
    {"local t={} for i=1,50 do t[i]={i%7,i} end table.sort(t,function(a,b) return a[1]<b[1] end) "
     "local o={} for i=1,50 do o[i]=t[i][2] end return table.concat(o,\" \")",
     "true | 14 28 49 21 35 7 42 15 43 29 22 36 1 50 8 37 44 2 23 9 30 16 3 24 10 31 45 17 38 25 "
     "46 39 4 32 18 11 19 5 47 40 26 12 33 48 41 13 20 6 27 34"},
    {"local t={} for i=1,50 do t[i]=(i*37)%50 end table.sort(t) return table.concat(t,\" \")",
     "true | 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 "
     "32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49"},
    {"table.maxn({1,2,[10]=3})", "true | 10"},
    {"table.setn({},1)", "false | user_script:1: 'setn' is obsolete"},
    {"table.getn({1,2})", "true | 2"},
    {"math.randomseed(42) return math.random(),math.random(10),math.random(5,9),math.random(-5,5)",
     "true | 0.74452500033403046 | 4 | 5 | -1"},
    {"math.randomseed(-1) return math.random(),math.random(1,1000000)",
     "true | 0.3000257272739083 | 45312"},
    {"math.randomseed(0) return math.random(100),math.random(1.5,3.5),math.random(2^31-1)",
     "true | 18 | 3 | 206956555"},
    {"math.random(0)", "false | user_script:1: bad argument #1 to 'random' (interval is empty)"},
    {"math.random(3,1)", "false | user_script:1: bad argument #2 to 'random' (interval is empty)"},
    {"math.random(1,2,3)", "false | user_script:1: wrong number of arguments"},
    {"math.random(\"x\")",
     "false | user_script:1: bad argument #1 to 'random' (number expected, got string)"},
    {"math.randomseed(\"x\")",
     "false | user_script:1: bad argument #1 to 'randomseed' (number expected, got string)"},
    {"math.randomseed()",
     "false | user_script:1: bad argument #1 to 'randomseed' (number expected, got no value)"},
    {"math.mod(7,3)", "true | 1"},
    {"math.fmod(7,-3)", "true | 1"},
    {"math.floor(-1.5)", "true | -2"},
    {"coroutine.resume(coroutine.create(function() error(\"x\") end))",
     "true | false | user_script:1: x"},
    {"coroutine.wrap(function() error(\"x\") end)()", "false | user_script:1: user_script:1: x"},
    {"coroutine.wrap(function(...) return select('#',...),coroutine.yield(1) end)(1,2)", "true"},
    {"local function r() return coroutine.wrap(r)() end return r()",
     "false | user_script:1: user_script:1: user_script:1: user_script:1: user_script:1: "
     "user_script:1: user_script:1: user_script:1: user_script:1: user_script:1: user_script:1: "
     "user_script:1: user_script:1: user_script:1: user_script:1: user_script:1: user_script:1: "
     "user_script:1: user_script:1: user_script:1: user_script:1: user_script:1: user_script:1: "
     "user_script:1: user_script:1: user_script:1: user_scrip"},
    {"tonumber(\"0x10\"),tonumber(\"10\",2),tonumber(\"zz\",36),tonumber(\"1e\"),tonumber(\"\")",
     "true | 16 | 2 | 1295"},
    {"tostring(nil),tostring(true),tostring(1e100)", "true | nil | true | 1e+100"},
    {"select('#'),select(-1,1,2),select(2,1,2)", "true | 0 | 2 | 2"},
    {"select(0)", "false | user_script:1: bad argument #1 to 'select' (index out of range)"},
};

static void test_others(void **state)
{
    (void)state;
    CHECK_ROWS_IN_EACH_STATE(others_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
