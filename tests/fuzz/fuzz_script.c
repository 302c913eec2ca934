/* Lua sources through EVAL, EVAL_RO, FUNCTION LOAD and FCALL. The input is a source as it stands,
 * or decides for a grammar what to write: statements, expressions and calls of every function that
 * scripts see, with values at the boundaries. Whatever the script does, an answer comes back,
 * memory stays bounded, and the script behind it finds everything as it was.
 *
 *   byte 0   bit 0: the grammar; bits 1-2: EVAL, EVAL_RO, FUNCTION LOAD and FCALL
 *   rest     the source, or the grammar's decisions
 *
 * A script that takes long is ended as SCRIPT KILL does; that needs one that has not written, so
 * sources that may loop run read-only, and what the grammar writes comes last, without loops. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/thread.h"
#include "commands/commands.h"
#include "engine/busy.h"
#include "engine/cmdstats.h"
#include "engine/execute.h"
#include "keyspace/access.h"
#include "keyspace/expire.h"
#include "keyspace/reclaim.h"
#include "resp/limits.h"
#include "script/eval.h"
#include "script/functions.h"
#include "value/hash.h"
#include "value/list.h"
#include "value/set.h"
#include "value/stream.h"
#include "value/zset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One allocation of a script at most: what asks for more gets Lua's error. */
#define ALLOCATION_MAX_BYTES ((size_t)64 << 20)
#define SOURCE_MAX_BYTES ((size_t)16 << 10)
#define DEPTH_MAX 7
/* A script that has run for so long is ended. */
#define THRESHOLD_MS 50

static struct session session;
static struct arena arena;
static struct reply reply;
static struct buf canary_before;

static void require(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "script: %s\n", what);
        abort();
    }
}

/* ---- the grammar ---- */

struct writer {
    const uint8_t *at, *end;
    struct buf *out;
    int depth, loops;
};

/* 0 when the input is used up: then the first, shortest form is taken everywhere. */
static unsigned choose(struct writer *w, unsigned count)
{
    return w->at < w->end ? *w->at++ % count : 0;
}

static void put(struct writer *w, const char *text)
{
    buf_append_cstr(w->out, text);
}

static const char *const names[] = {"a", "b", "c", "KEYS", "ARGV", "_G", "string", "redis"};
static const char *const literals[] = {
    "nil",
    "1",
    "'x'",
    "{}",
    "true",
    "false",
    "0",
    "-1",
    "0.5",
    "2^31",
    "2^53",
    "-2^63",
    "1e308",
    "1/0",
    "-1/0",
    "0/0",
    "''",
    "'a%0b'",
    "'%d+(%a*)'",
    "('ab'):rep(100)",
    "'\\0\\255'",
    "'[[1,2]]'",
    "'{\"a\":1}'",
    "'return 1'",
    "'\\27Lua'",
    "'%f[%w]'",
    "'>i4s'",
    "...",
    "{1,2,3}",
    "{a=1,b={}}",
    "function(...) return ... end",
    "KEYS[1]",
    "ARGV[1]",
    "_G",
    "string.rep",
    "'__index'",
    "''..1",
};
static const char *const functions[] = {
    "tostring",
    "tonumber",
    "type",
    "pcall",
    "xpcall",
    "error",
    "assert",
    "select",
    "unpack",
    "next",
    "pairs",
    "ipairs",
    "rawget",
    "rawset",
    "rawequal",
    "setmetatable",
    "getmetatable",
    "loadstring",
    "load",
    "collectgarbage",
    "string.byte",
    "string.char",
    "string.find",
    "string.format",
    "string.gmatch",
    "string.gsub",
    "string.len",
    "string.lower",
    "string.match",
    "string.rep",
    "string.reverse",
    "string.sub",
    "string.upper",
    "table.concat",
    "table.insert",
    "table.maxn",
    "table.remove",
    "table.sort",
    "table.foreach",
    "table.foreachi",
    "table.getn",
    "table.setn",
    "math.abs",
    "math.floor",
    "math.fmod",
    "math.frexp",
    "math.ldexp",
    "math.max",
    "math.pow",
    "math.random",
    "math.randomseed",
    "coroutine.create",
    "coroutine.resume",
    "coroutine.running",
    "coroutine.status",
    "coroutine.wrap",
    "coroutine.yield",
    "os.clock",
    "cjson.encode",
    "cjson.decode",
    "cjson.encode_max_depth",
    "cjson.encode_sparse_array",
    "cjson.decode_max_depth",
    "cjson.encode_number_precision",
    "cjson.encode_keep_buffer",
    "cjson.encode_invalid_numbers",
    "cmsgpack.pack",
    "cmsgpack.unpack",
    "cmsgpack.unpack_one",
    "cmsgpack.unpack_limit",
    "struct.pack",
    "struct.unpack",
    "struct.size",
    "bit.tobit",
    "bit.tohex",
    "bit.band",
    "bit.bor",
    "bit.bxor",
    "bit.bnot",
    "bit.lshift",
    "bit.rshift",
    "bit.arshift",
    "bit.rol",
    "bit.ror",
    "bit.bswap",
    "redis.call",
    "redis.pcall",
    "redis.sha1hex",
    "redis.error_reply",
    "redis.status_reply",
    "redis.setresp",
    "redis.set_repl",
    "redis.acl_check_cmd",
    "redis.replicate_commands",
    "redis.breakpoint",
    "redis.debug",
    "keydb.call",
    "print",
    "dofile",
    "require",
    "newproxy",
    "getfenv",
    "setfenv",
    "string.dump",
};
static const char *const reads[] = {
    "'GET',KEYS[1]",
    "'LRANGE','l',0,-1",
    "'HGETALL','h'",
    "'ZRANGE','z',0,-1,'WITHSCORES'",
    "'SMEMBERS','s'",
    "'KEYS','*'",
    "'SCAN',0",
    "'GETRANGE',KEYS[1],-1,",
    "'PING'",
    "'EVAL',",
    "'MULTI'",
    "'TYPE',",
    "'LPOS','l',",
    "'HRANDFIELD','h',5",
    "'OBJECT','ENCODING',",
};
static const char *const writes[] = {
    "'SET',KEYS[1],",     "'RPUSH','l',",        "'HSET','h','f',",
    "'SADD','s',",        "'ZADD','z',1,",       "'DEL',",
    "'INCRBYFLOAT','n',", "'APPEND',KEYS[1],",   "'SETRANGE',KEYS[1],10,",
    "'LTRIM','l',0,",     "'SORT','l','STORE',", "'EXPIRE',KEYS[1],",
    "'RESTORE','r',0,",   "'FUNCTION','FLUSH'",  "'COPY','l',",
};
static const char *const binaries[] = {"..", "+",  "-", "*",  "/",     "%",
                                       "^",  "==", "<", "<=", " and ", " or "};

#define PICK(w, table) put((w), (table)[choose((w), sizeof(table) / sizeof((table)[0]))])

static void write_block(struct writer *w);
static void write_expression(struct writer *w);

static void write_arguments(struct writer *w, unsigned most)
{
    unsigned count = choose(w, most);
    put(w, "(");
    for (unsigned i = 0; i < count; i++) {
        put(w, i ? "," : "");
        write_expression(w);
    }
    put(w, ")");
}

static void write_command(struct writer *w)
{
    put(w, choose(w, 2) ? "redis.call(" : "redis.pcall(");
    PICK(w, reads);
    if (buf_slice(w->out).ptr[w->out->len - 1] == ',') {
        write_expression(w);
    }
    put(w, ")");
}

static void write_function(struct writer *w)
{
    put(w, "function(a,...) ");
    write_block(w);
    put(w, "return ");
    write_expression(w);
    put(w, " end");
}

static void write_expression(struct writer *w)
{
    if (w->depth == 0 || w->out->len > SOURCE_MAX_BYTES) {
        PICK(w, literals);
        return;
    }
    w->depth--;
    switch (choose(w, 10)) {
    case 0:
        PICK(w, literals);
        break;
    case 1:
        PICK(w, names);
        break;
    case 2:
        PICK(w, functions);
        write_arguments(w, 5);
        break;
    case 3:
        put(w, "(");
        write_expression(w);
        PICK(w, binaries);
        write_expression(w);
        put(w, ")");
        break;
    case 4:
        put(w, choose(w, 2) ? "#(" : "-(");
        write_expression(w);
        put(w, ")");
        break;
    case 5:
        put(w, "{");
        write_expression(w);
        put(w, ",x=");
        write_expression(w);
        put(w, ",[");
        write_expression(w);
        put(w, "]=a}");
        break;
    case 6:
        put(w, "(");
        write_expression(w);
        put(w, ")[");
        write_expression(w);
        put(w, "]");
        break;
    case 7:
        write_function(w);
        break;
    case 8:
        write_command(w);
        break;
    default:
        PICK(w, functions);
        break;
    }
    w->depth++;
}

static void write_loop(struct writer *w)
{
    static const char *const heads[] = {"for i=1,3 do ", "for k,v in pairs(a) do ",
                                        "for i=1,0,-1e300 do ", "for k in next,a do ",
                                        "while true do "};
    PICK(w, heads);
    w->loops++;
    write_block(w);
    w->loops--;
    put(w, "end ");
}

/* What only a hostile script does. */
static void write_attack(struct writer *w)
{
    static const char *const attacks[] = {
        "_G.a=1 ",
        "string.rep=nil ",
        "rawset(_G,'a',1) ",
        "setmetatable(_G,{}) ",
        "getmetatable('').__index=nil ",
        "getmetatable(_G).__newindex=nil ",
        "redis.call=print ",
        "KEYS=nil ",
        "ARGV[1]=a ",
        "a={} a.a=a ",
        "a=setmetatable({},{__gc=error,__mode='kv'}) ",
        "setmetatable(a,{__index=a,__newindex=a,__call=a,__tostring=a,__eq=a,__lt=a,__concat=a}) ",
        "a=coroutine.wrap(function() while true do coroutine.yield(a) end end) a() a() ",
        "a=function(...) return a(...) end pcall(a) ",
        "a=('x'):rep(2^20) b=a..a c={a,b} ",
        "table.sort({3,1,2},function(x,y) return a end) ",
        "for k,v in pairs(_G) do _G[k]=nil end ",
        "cjson.encode_max_depth(2^31) ",
        "a=loadstring(tostring(a)) ",
        "error(a) ",
        "error({err=a}) ",
        "cjson.decode(('['):rep(9999)) ",
        "unpack({},-2^31,2^31) ",
        "redis.setresp(3) ",
    };
    PICK(w, attacks);
}

static void write_statement(struct writer *w)
{
    w->depth--;
    switch (choose(w, 9)) {
    case 0:
        put(w, "a=");
        write_expression(w);
        break;
    case 1:
        put(w, "local b=");
        write_expression(w);
        break;
    case 2:
        put(w, "pcall(");
        write_function(w);
        put(w, ")");
        break;
    case 3:
        put(w, "if ");
        write_expression(w);
        put(w, " then ");
        write_block(w);
        put(w, "else ");
        write_block(w);
        put(w, "end");
        break;
    case 4:
        write_loop(w);
        break;
    case 5:
        write_attack(w);
        break;
    case 6:
        put(w, "do local c=coroutine.wrap(");
        write_function(w);
        put(w, ") pcall(c,");
        write_expression(w);
        put(w, ") end");
        break;
    case 7:
        put(w, w->loops ? "do break end" : "pcall(error)");
        break;
    default:
        put(w, "pcall(");
        PICK(w, functions);
        put(w, ",");
        write_expression(w);
        put(w, ",");
        write_expression(w);
        put(w, ")");
    }
    put(w, " ");
    w->depth++;
}

static void write_block(struct writer *w)
{
    for (unsigned i = choose(w, 4); i > 0 && w->depth > 0 && w->out->len < SOURCE_MAX_BYTES; i--) {
        write_statement(w);
    }
}

/* Straight on, without a loop: nobody ends a script that has written. */
static void write_writes(struct writer *w)
{
    for (unsigned i = choose(w, 5); i > 0; i--) {
        put(w, "pcall(redis.call,");
        PICK(w, writes);
        if (w->out->data[w->out->len - 1] == ',') {
            PICK(w, literals);
        }
        put(w, ") ");
    }
}

static void write_source(struct writer *w, bool may_write)
{
    put(w, "local a,b,c=KEYS,ARGV,... ");
    for (unsigned i = 1 + choose(w, 8); i > 0; i--) {
        write_statement(w);
    }
    if (may_write) {
        write_writes(w);
    }
    put(w, "return ");
    w->depth = 1;
    PICK(w, literals);
}

static void write_library(struct writer *w)
{
    put(w, "#!lua name=l\nlocal a,b,c ");
    write_block(w);
    put(w, "redis.register_function{function_name='f',flags={'no-writes'},callback=");
    write_function(w);
    put(w, "} redis.register_function('g',function(a,...) ");
    put(w, "a={...} ");
    write_writes(w);
    put(w, "return 1 end) ");
    write_block(w);
}

/* ---- running ---- */

/* The engine's, of a script that takes long. */
static void end_script(void)
{
    struct reply r;
    struct call c = {.reply = &r};
    reply_init(&r);
    reply_begin(&r, 2);
    busy_kill(&c, BUSY_SCRIPT);
    busy_kill(&c, BUSY_FUNCTION);
    reply_end(&r);
    reply_deinit(&r);
}

/* Runs a request and appends its reply to `out`, if there is one. */
static void run(int argc, struct slice *argv, struct buf *out)
{
    struct call c = {.argc = argc,
                     .argv = argv,
                     .session = &session,
                     .reply = &reply,
                     .now_ms = clock_wall_ms(),
                     .held = ACCESS_EXCLUSIVE};
    call_prepare(&c, &arena);
    reply_begin(&reply, 2);
    keyspace_lock_exclusive();
    call_run(&c);
    keyspace_unlock_exclusive();
    reclaim_run();
    reply_end(&reply);
    require(reply.piece_count > 0, "each request has an answer");
    for (uint32_t i = 0; out && i < reply.piece_count; i++) {
        buf_append(out, reply.pieces[i].ptr, reply.pieces[i].len);
    }
    reply_reset(&reply);
    arena_reset(&arena);
}

static void eval(const char *command, struct slice source, struct buf *out)
{
    struct slice argv[] = {slice_cstr(command), source,     SLICE("1"), SLICE("k"),
                           SLICE("argument"),   SLICE("-1")};
    run(6, argv, out);
}

static void set_threshold(int64_t ms)
{
    *(int64_t *)busy_options[0].target = ms;
}

/* What a script sees of the world: all names with their types, and some of what they do. */
static void look(struct buf *out)
{
    static const char source[] =
        "local n={} local function add(p,t) for k,v in pairs(t) do n[#n+1]=p..tostring(k)..type(v) "
        "end end add('',_G) for _,l in ipairs({'string','table','math','coroutine','os','cjson',"
        "'cmsgpack','struct','bit','redis','keydb'}) do add(l..'.',_G[l]) end table.sort(n) "
        "n[#n+1]=cjson.encode({1,'a',{b=0.1}}) math.randomseed(5) n[#n+1]=math.random(1,1000) "
        "n[#n+1]=('ab'):rep(3):upper() n[#n+1]=type(getmetatable('')) n[#n+1]=#KEYS..#ARGV "
        "n[#n+1]=tostring(pcall(function() _G.x=1 end)) n[#n+1]=tostring(rawget(_G,'a')) "
        "n[#n+1]=tostring(pcall(function() getmetatable('').__index=nil end)) "
        "return redis.sha1hex(table.concat(n,' '))";
    set_threshold(0); /* this one is never ended, however slow the machine is */
    eval("EVAL", SLICE(source), out);
    set_threshold(THRESHOLD_MS);
}

static void store_initial(const struct option *options)
{
    for (; options->name; options++) {
        option_store_initial(options);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct command_row *const tables[] = {
        string_commands,    string_set_commands, string_number_commands, hash_commands,
        hash_walk_commands, set_commands,        zset_commands,          zset_range_commands,
        list_commands,      list_index_commands, key_commands,           key_expire_commands,
        key_scan_commands,  key_object_commands, sort_commands,          script_commands,
        function_commands};
    static const struct option *const options[] = {
        access_options, expire_options, reclaim_options, resp_options,   hash_options,
        set_options,    list_options,   zset_options,    stream_options, busy_options};
    (void)argc;
    (void)argv;
    clock_setup();
    thread_enter("fuzz");
    hash_set_secret(1);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        store_initial(options[i]);
    }
    set_threshold(THRESHOLD_MS);
    busy_set_server(end_script);
    db_setup(4);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        command_register(tables[i]);
    }
    cmdstats_setup();
    script_setup();
    session_init(&session, 1);
    arena_init(&arena, 4096);
    reply_init(&reply);
    look(&canary_before);
    require(canary_before.len == 47, "the canary sings");
    return 0;
}

static void forget_everything(void)
{
    keyspace_lock_exclusive();
    eval_flush();
    functions_flush();
    for (int i = 0; i < db_count(); i++) {
        db_flush(db_at(i), false);
    }
    keyspace_unlock_exclusive();
    reclaim_run();
}

static void run_library(struct slice source)
{
    struct slice load[] = {SLICE("FUNCTION"), SLICE("LOAD"), source};
    run(3, load, NULL);
    for (const char *name = "fg"; *name; name++) {
        struct slice call[] = {SLICE("FCALL"), slice_of(name, 1), SLICE("1"), SLICE("k"),
                               SLICE("argument")};
        run(5, call, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct buf source = {0}, canary = {0};
    if (len == 0) {
        return 0;
    }
    unsigned kind = bytes[0] >> 1 & 3;
    bool grammar = bytes[0] & 1;
    len--;
    rand_set_seed(1);
    if (grammar) {
        struct writer w = {
            .at = bytes + 1, .end = bytes + 1 + len, .out = &source, .depth = DEPTH_MAX};
        if (kind >= 2) {
            write_library(&w);
        } else {
            write_source(&w, kind == 0);
        }
    } else {
        buf_append(&source, (const char *)(bytes + 1), len);
    }
    mem_fail_above(ALLOCATION_MAX_BYTES);
    if (kind >= 2) {
        run_library(buf_slice(&source));
    } else {
        eval(kind == 0 && grammar ? "EVAL" : "EVAL_RO", buf_slice(&source), NULL);
    }
    mem_fail_above(SIZE_MAX);
    look(&canary);
    if (!slice_equal(buf_slice(&canary), buf_slice(&canary_before))) {
        fprintf(stderr, "script: before '%s'\nscript: behind '%s'\n", buf_cstr(&canary_before),
                buf_cstr(&canary));
    }
    require(slice_equal(buf_slice(&canary), buf_slice(&canary_before)),
            "the script behind it finds everything as it was");
    forget_everything();
    buf_deinit(&source);
    buf_deinit(&canary);
    return 0;
}
