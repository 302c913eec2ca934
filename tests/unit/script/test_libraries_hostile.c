/* Inputs that break Lua 5.1's libraries and those of other servers: each is a row of the list of
 * known faults (CVEs and crashes of this family). What counts is that an error comes back, soon,
 * and that the state works afterwards. */
#include "script/libraries.h"
#include "script/libraries_helper.h"

#include <stdio.h>
#include <string.h>

static lua_State *L;

static int setup(void **state)
{
    (void)state;
    L = libraries_state();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    check_expression(L, "cjson.encode({1,'a'}), ('x'):rep(3), #'abc'",
                     "true | [1,\"a\"] | xxx | 3");
    lua_close(L);
    return 0;
}

/* CVE-2025-46817: unpack with ranges whose length overflows. */
static void test_unpack_ranges(void **state)
{
    static const struct expression rows[] = {
        {"unpack({},-2^31,2^31)", "false | user_script:1: too many results to unpack"},
        {"unpack({},-2^31,-1)", "false | user_script:1: too many results to unpack"},
        {"unpack({},0,2^31-1)", "false | user_script:1: too many results to unpack"},
        {"unpack({},-2^53,2^53)", "false | user_script:1: too many results to unpack"},
        {"unpack({},-1/0,1/0)", "false | user_script:1: too many results to unpack"},
        {"unpack({},2^31-1,2^31-1)", "true"},
        {"unpack({},-2^31,-2^31)", "true"},
        {"unpack({},1/0,1/0)", "true"},
        {"unpack({},0/0,0/0)", "true"},
        {"select('#',unpack({},2^31-5,2^31-1))", "true | 5"},
    };
    (void)state;
    CHECK_ROWS(L, rows);
}

/* Every numeric argument of every library function takes every number that is a boundary somewhere;
 * only errors and results may come of it. */
static void test_boundary_numbers(void **state)
{
    (void)state;
    check_expression(
        L,
        "local B={-2^63,-2^63+1024,-2^53,-2^32,-2^31-1,-2^31,-33,-1,-0.0,0,0.5,1,2,33,2^31-1,2^31,"
        "2^32-1,2^32,2^53,2^63-1024,2^63,2^64,1e300,1/0,-1/0,0/0} local n=0 "
        "local calls={unpack=function(a,b) return unpack({1,2},a,b) end,"
        "rep=function(a) return ('ab'):rep(a) end,"
        "sub=function(a,b) return ('abc'):sub(a,b) end,byte=function(a,b) return ('abc'):byte(a,b) "
        "end,"
        "find=function(a) return ('abc'):find('b',a) end,match=function(a) return "
        "('abc'):match('b',a) "
        "end,gsub=function(a) return ('abc'):gsub('b','x',a) end,char=string.char,"
        "concat=function(a,b) return table.concat({1,2},',',a,b) end,"
        "setn=table.setn,remove=function(a) return table.remove({1,2},a) end,"
        "random=math.random,seed=math.randomseed,tobit=bit.tobit,tohex=bit.tohex,lshift=bit.lshift,"
        "rshift=bit.rshift,arshift=bit.arshift,rol=bit.rol,ror=bit.ror,bnot=bit.bnot,bswap=bit."
        "bswap,"
        "band=bit.band,bor=bit.bor,bxor=bit.bxor,"
        "one=function(a) return cmsgpack.unpack_one('\\1\\2',a) end,"
        "limit=function(a,b) return cmsgpack.unpack_limit('\\1\\2',a,b) end,"
        "pack=function(a,b) return cmsgpack.unpack(cmsgpack.pack(a,{b})) end,"
        "json=function(a,b) return cjson.encode({a,{[b]=1}}) end,"
        "spack=function(a,b) return struct.pack('bBhHlLiITi16fd',a,b,a,b,a,b,a,b,a,b,a,b) end,"
        "sunpack=function(a) return struct.unpack('b','ab',a) end,"
        "depth=cjson.encode_max_depth,ddepth=cjson.decode_max_depth,"
        "sparse=function(a,b) return cjson.encode_sparse_array(false,a,b) end,"
        "digits=cjson.encode_number_precision,select=function(a) return select(a,1,2) end,"
        "tonumber=function(a) return tonumber('11',a) end,ldexp=math.ldexp,"
        "format=function(a) return ('%d %i %u %c %x %5.2f %g'):format(a,a,a,a,a,a,a) end} "
        "for _,f in pairs(calls) do for _,a in ipairs(B) do pcall(f,a) n=n+1 "
        "for _,b in ipairs(B) do pcall(f,a,b) n=n+1 end end end return n>10000",
        "true | true");
    script_reset_libraries(L);
}

/* Formats of struct with sizes and alignments at every boundary: CVE-2018-11219, CVE-2020-14147. */
static void test_struct_sizes(void **state)
{
    (void)state;
    check_expression(
        L,
        "local N={'0','1','2','3','7','8','9','16','31','32','33','127','128','255','256','32767',"
        "'65535','65536','2147483646','2147483647','2147483648','4294967295','4294967296',"
        "'9223372036854775807','9223372036854775808','18446744073709551616','"
        "99999999999999999999999'} "
        "local O='bBhHlLTfdsxciI!<>=y ' local data=('a'):rep(300) local n=0 "
        "for o in O:gmatch('.') do for _,w in ipairs(N) do for _,f in "
        "ipairs({o..w,'b'..o..w,'!'..w..o,"
        "o..w..o..w,'!'..w..'b'..o..w..'i','bc0'..o..w}) do "
        "local ok,packed=pcall(struct.pack,f,1,2,3,4) if ok then pcall(struct.unpack,f,packed) end "
        "pcall(struct.pack,f,'abc','abc','abc') pcall(struct.unpack,f,data) "
        "pcall(struct.unpack,f,'') "
        "pcall(struct.unpack,f,data,299) pcall(struct.unpack,f,data,2^53) pcall(struct.size,f) "
        "n=n+1 "
        "end end end return n>3000",
        "true | true");
}

/* CVE-2024-31449. */
static void test_tohex_digits(void **state)
{
    static const struct expression rows[] = {
        {"bit.tohex(65535,-2147483648)", "true | 0000FFFF"},
        {"bit.tohex(65535,2147483647)", "true | 0000ffff"},
        {"bit.tohex(65535,-2^63)", "true | 0000FFFF"},
        {"bit.tohex(65535,-1/0)", "true | 0000FFFF"},
        {"bit.tohex(65535,0/0)", "true | 0000FFFF"},
    };
    (void)state;
    CHECK_ROWS(L, rows);
}

/* CVE-2018-11218 and its like: as many arguments as a call can have, deep nesting, lengths that
 * lie. */
static void test_msgpack_depth_and_lengths(void **state)
{
    (void)state;
    check_expression(L, "pcall(cmsgpack.pack,unpack({},1,7990))", "true | *");
    check_expression(L, "local t={} for i=1,10000 do t={t} end return #cmsgpack.pack(t)",
                     "true | 17");
    check_expression(L, "local t={} t[1]=t return #cmsgpack.pack(t)", "true | 17");
    check_expression(L, "cmsgpack.unpack(('\\145'):rep(1000000)..'\\1')",
                     "false | user_script:1: *");
    check_expression(L, "cmsgpack.unpack(('\\129\\1'):rep(1000000)..'\\1')",
                     "false | user_script:1: *");
    check_expression(L, "cmsgpack.unpack(('\\221\\0\\0\\0\\9'):rep(100000))",
                     "false | user_script:1: *");
    /* Every prefix of a text with every form is refused or read, and none is read beyond. */
    check_expression(
        L,
        "local whole=cmsgpack.pack({1,-1,200,-200,70000,-70000,2^40,-2^40,0.5,0.1,true,false,'a',"
        "('b'):rep(40),('c'):rep(300),{a={b={1,2}}},{},('d'):rep(70000)}) local bad=0 "
        "for i=0,400 do if not pcall(cmsgpack.unpack,whole:sub(1,i)) then bad=bad+1 end end "
        "return bad,pcall(cmsgpack.unpack,whole)",
        "true | 400 | true | *");
    /* Every first byte, with hostile ones behind it. */
    check_expression(L,
                     "for i=0,255 do for _,b in ipairs({0,1,127,128,255}) do for n=0,9 do "
                     "pcall(cmsgpack.unpack,string.char(i)..string.char(b):rep(n)) end end end "
                     "return 1",
                     "true | 1");
}

/* CVE-2022-24834 and its like: depth is bounded whatever is asked for, sizes by the state's memory.
 */
static void test_json_depth_and_size(void **state)
{
    (void)state;
    check_expression(L, "cjson.encode_max_depth(2^31-1), cjson.decode_max_depth(2^31-1)",
                     "true | *");
    check_expression(L, "local t={} for i=1,100000 do t={t} end return cjson.encode(t)",
                     "false | user_script:1: Cannot serialise, excessive nesting (*");
    check_expression(L, "local t={} for i=1,100000 do t={a=t} end return cjson.encode(t)",
                     "false | user_script:1: Cannot serialise, excessive nesting (*");
    check_expression(L, "local t={} t[1]=t return cjson.encode(t)",
                     "false | user_script:1: Cannot serialise, excessive nesting (*");
    check_expression(L, "cjson.decode(('['):rep(1000000))",
                     "false | user_script:1: Found too many nested data structures (*");
    check_expression(L, "cjson.decode(('{\"a\":'):rep(1000000))",
                     "false | user_script:1: Found too many nested data structures (*");
    script_reset_libraries(L);
    check_expression(L, "cjson.encode_max_depth(), cjson.decode_max_depth()", "true | 1000 | 1000");
    /* Six bytes for each of these; more than there is. */
    check_expression(L, "cjson.encode(('\\1'):rep(12000000))", "false | not enough memory");
    /* Each level doubles the text. */
    check_expression(L, "local t={1} for i=1,60 do t={t,t} end return cjson.encode(t)",
                     "false | not enough memory");
    check_expression(L, "cjson.encode_sparse_array(true,0,0) return cjson.encode({[2^31-1]=1})",
                     "false | not enough memory");
    script_reset_libraries(L);
    check_expression(L,
                     "for i=0,255 do for j=0,255 do pcall(cjson.decode,string.char(i,j)) "
                     "pcall(cjson.decode,'\"\\\\'..string.char(i,j)) "
                     "pcall(cjson.decode,'[1'..string.char(i,j)) end end return 1",
                     "true | 1");
}

/* Patterns: Lua 5.1 recurses as deep as the pattern is long. */
static void test_pattern_depth(void **state)
{
    static const struct expression rows[] = {
        {"string.find(('a'):rep(500000),('a?'):rep(500000))",
         "false | user_script:1: pattern too complex"},
        {"string.find('',('a*'):rep(500000))", "false | user_script:1: pattern too complex"},
        {"string.find('',('a-'):rep(500000))", "false | user_script:1: pattern too complex"},
        {"string.find('',('()'):rep(500000))", "false | user_script:1: too many captures"},
        {"string.gsub(('a'):rep(300000),('a?'):rep(300000),'')",
         "false | user_script:1: pattern too complex"},
        {"string.find(('a'):rep(300000),('a'):rep(300000)..'$')", "true | 1 | 300000"},
        {"string.find(('a'):rep(300000),('a'):rep(150).. '*$')", "true | 1 | 300000"},
        {"string.match(('('):rep(200000)..(')'):rep(200000),'%b()')", "true | *"},
        {"string.find('x','[' .. ('a-z'):rep(100000) .. ']')", "true | 1 | 1"},
        {"string.find(('a'):rep(200000),('a'):rep(100000)..'b',1,true)", "true"},
    };
    (void)state;
    CHECK_ROWS(L, rows);
}

/* Results that are larger than anything may be. */
static void test_sizes(void **state)
{
    static const struct expression rows[] = {
        {"string.rep('x',2^53)", "false | user_script:1: resulting string too large"},
        {"string.rep('xx',2^62)", "false | user_script:1: resulting string too large"},
        {"string.rep('x',1/0)", "false | user_script:1: resulting string too large"},
        {"string.rep('x',0/0)", "true | "},
        {"string.rep('x',400000000)", "false | not enough memory"},
        {"string.rep('',2^53)", "true | "},
        {"local s=('x'):rep(1000000) local t={} for i=1,1000 do t[i]=s end return table.concat(t)",
         "false | not enough memory"},
        {"string.gsub(('x'):rep(1000),'x',('y'):rep(100000))", "false | not enough memory"},
        {"string.gsub(('x'):rep(1000000),'.','%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%"
         "0%0')",
         "false | not enough memory"},
        {"table.concat({},'x',1,2^31)",
         "false | user_script:1: invalid value (nil) at index 1 in table for 'concat'"},
        {"table.concat({},'x',-2^31,-2^31+1)",
         "false | user_script:1: invalid value (nil) at index -2147483648 in table for 'concat'"},
        {"table.insert({},2^31,1)",
         "false | user_script:1: bad argument #2 to 'insert' (position out of bounds)"},
        {"cjson.decode('['..('1,'):rep(5000000)..'1]')", "false | not enough memory"},
    };
    (void)state;
    CHECK_ROWS(L, rows);
}

/* Coroutines that resume one another count nested calls together. */
static void test_coroutine_depth(void **state)
{
    (void)state;
    check_expression(L, "local function r() return coroutine.wrap(r)() end return r()",
                     "false | *");
    check_expression(L,
                     "local function r() return pcall(coroutine.resume,coroutine.create(r)) end "
                     "return (r())",
                     "true | true");
    check_expression(L, "local function r() return (('x'):gsub('x',r)) end return pcall(r)",
                     "true | false | *");
    check_expression(L, "local function r() return table.sort({2,1},r) end return (pcall(r))",
                     "true | false");
}

/* What no script may have. */
static void test_reachable(void **state)
{
    (void)state;
    check_expression(L,
                     "local o={} for _,n in ipairs({'dofile','loadfile','print','newproxy',"
                     "'getfenv','setfenv','module','require','package','io','debug'}) do "
                     "if _G[n]~=nil then o[#o+1]=n end end return #o,string.dump==nil",
                     "true | 0 | true");
    check_expression(L, "local n=0 for k in pairs(os) do n=n+1 end return n,type(os.clock())",
                     "true | 1 | number");
}

/* Seeds and settings end with the script that set them; the common generator goes on. */
static void test_reset(void **state)
{
    (void)state;
    check_expression(L, "math.random()",
                     "true | 0.39646477363839039"); /* as the oracle after its start */
    check_expression(L, "math.randomseed(5) return math.random()", "true | 0.52483957937212644");
    script_reset_libraries(L);
    check_expression(L, "math.random()", "true | 0.84048536971234034");
    check_expression(L, "cjson.encode_number_precision(3),cjson.encode_invalid_numbers(true)",
                     "true | 3 | true");
    script_reset_libraries(L);
    check_expression(L, "cjson.encode_number_precision(),cjson.encode_invalid_numbers()",
                     "true | 14 | false");
}

/* ---- ending what takes long inside C ---- */

static int hook_calls;

static void end_script(lua_State *state, lua_Debug *where)
{
    (void)where;
    /* Not at once: calls before the long one make some, too. */
    if (++hook_calls > 3) {
        luaL_error(state, "ended");
    }
}

static void test_hook_ends_c_loops(void **state)
{
    /* Each would run for minutes, if it ended at all. */
    static const char *const loops[] = {
        "string.find(('a'):rep(40),('a*'):rep(20)..'b')",
        "string.match(('a'):rep(3000),'.-.-.-.-.-b')",
        "string.gsub(('a'):rep(100000),'.-b','')",
        "for w in string.gmatch(('a'):rep(100000),'.-b') do end return 1",
        "string.find(('('):rep(1000000),'%b()')",
        "local t={1} for i=1,60 do t={t,t} end return cjson.encode(t)",
        "local t={} for i=1,300000 do t[i]=i%7 end table.sort(t,rawequal) return 1",
        "table.insert({},-2^31,1)",
        "local t={} for i=1,16 do t={t,t,t,t,t,t} end return #cmsgpack.pack(t)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        hook_calls = 0;
        /* Lua's own instructions call it far less often than the loops do. */
        lua_sethook(L, end_script, LUA_MASKCOUNT, 1 << 30);
        check_expression(L, loops[i], "false | *");
        assert_true(hook_calls > 3);
        lua_sethook(L, NULL, 0, 0);
    }
}

#ifdef __SANITIZE_THREAD__
/* Lua's errors jump out of instrumented functions, whose frames stay on ThreadSanitizer's own
 * stack; that has 65,536. One thread runs here: there is nothing for it to find. */
static void test_not_under_thread_sanitizer(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
#ifdef __SANITIZE_THREAD__
    const struct CMUnitTest none[] = {cmocka_unit_test(test_not_under_thread_sanitizer)};
    return cmocka_run_group_tests(none, NULL, NULL);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unpack_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_boundary_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_struct_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tohex_digits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_msgpack_depth_and_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_depth_and_size, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pattern_depth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_coroutine_depth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reachable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hook_ends_c_loops, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
