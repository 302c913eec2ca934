/* See eval.h. The scripts are two tables in the interpreter's registry: functions by SHA1, and what
 * their shebang lines say. */
#include "script/eval.h"

#include "base/mem.h"
#include "engine/execute.h"
#include "script/api.h"
#include "script/debugger.h"
#include "script/recent.h"
#include "script/run.h"
#include "script/shebang.h"
#include "script/world.h"

#include <assert.h>
#include <string.h>

#define SHA_CHARS RECENT_SHA_CHARS
/* Scripts that are found by a look at their SHA1 alone. */
#define FOUND_SCRIPTS 128

/* Their addresses are keys of the registry. */
static const char functions_key, flags_key;

static struct {
    struct vm vm;
    _Atomic uint64_t count;
    /* The scripts that were found last, each in the one place that its SHA1 gives it; the function
     * of found[i] is at i + 1 of the interpreter's table VM_RECENT. */
    struct {
        char sha[SHA_CHARS]; /* [0] 0: none */
        unsigned flags;
    } found[FOUND_SCRIPTS];
} cache;

/* What is looked for, and made where it is missing. */
struct wanted {
    struct call *c; /* whom errors are told; NULL: nobody */
    char sha[SHA_CHARS];
    struct slice script; /* ptr NULL: it must be there */
    bool found;          /* by its SHA1 */
    unsigned flags;      /* its own */
};

static void push_registered(lua_State *L, const char *key)
{
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

static size_t place_of(const char *sha)
{
    uint32_t digits;
    memcpy(&digits, sha, sizeof(digits));
    return (digits * 0x9e3779b1u >> 16) % FOUND_SCRIPTS;
}

/* Pushes the script's function if it was found lately; else nothing. */
static bool push_found(lua_State *L, struct wanted *w)
{
    size_t place = place_of(w->sha);
    if (memcmp(cache.found[place].sha, w->sha, SHA_CHARS) != 0) {
        return false;
    }
    vm_push_slot(L, VM_RECENT);
    lua_rawgeti(L, -1, (int)place + 1);
    lua_replace(L, -2);
    w->flags = cache.found[place].flags;
    return true;
}

/* The function on top is the script's. */
static void note_found(lua_State *L, const struct wanted *w)
{
    size_t place = place_of(w->sha);
    cache.found[place].sha[0] = '\0'; /* the table may have no memory */
    vm_push_slot(L, VM_RECENT);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, (int)place + 1);
    lua_pop(L, 1);
    cache.found[place].flags = w->flags;
    memcpy(cache.found[place].sha, w->sha, SHA_CHARS);
}

/* Pushes the script's function, or nothing. */
static bool push_cached(lua_State *L, struct wanted *w)
{
    if (likely(push_found(L, w))) {
        return true;
    }
    push_registered(L, &functions_key);
    lua_pushlstring(L, w->sha, SHA_CHARS);
    lua_rawget(L, -2);
    lua_replace(L, -2);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return false;
    }
    push_registered(L, &flags_key);
    lua_pushlstring(L, w->sha, SHA_CHARS);
    lua_rawget(L, -2);
    w->flags = (unsigned)lua_tointeger(L, -1);
    lua_pop(L, 2);
    note_found(L, w);
    return true;
}

static void remember(lua_State *L, const struct wanted *w)
{
    push_registered(L, &flags_key);
    lua_pushlstring(L, w->sha, SHA_CHARS);
    lua_pushinteger(L, w->flags);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    push_registered(L, &functions_key);
    lua_pushlstring(L, w->sha, SHA_CHARS);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    atomic_fetch_add_explicit(&cache.count, 1, memory_order_relaxed);
}

/* ---- shebang ---- */

static int shown(struct slice word)
{
    return word.len < 128 ? (int)word.len : 128;
}

/* Replies it, if there is somebody to tell (c); false. */
static bool fault(struct call *c, const char *what, struct slice word)
{
    if (c) {
        reply_errorf(c->reply, "ERR %s%.*s", what, shown(word), word.ptr);
    }
    return false;
}

static bool read_flags(struct call *c, struct slice list, unsigned *flags)
{
    while (list.len > 0) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        unsigned flag = script_flag_of(slice_of(list.ptr, len));
        if (!flag) {
            return fault(c, "Unexpected flag in script shebang: ", slice_of(list.ptr, len));
        }
        *flags |= flag;
        len += comma != NULL;
        list = slice_of(list.ptr + len, list.len - len);
    }
    return true;
}

static bool read_words(struct call *c, const struct shebang *s, unsigned *flags)
{
    if (!slice_equal(s->engine, SLICE("lua"))) {
        return fault(c, "Unexpected engine in script shebang: #!", s->engine);
    }
    for (int i = 1; i < s->count; i++) {
        struct slice list;
        if (!shebang_word_is(s->words[i], "flags=", &list)) {
            return fault(c, "Unknown lua shebang option: ", s->words[i]);
        }
        if (!read_flags(c, list, flags)) {
            return false;
        }
    }
    return true;
}

/* The flags and the code of w->script; false with the error replied (w->c NULL: to nobody). */
static bool read_shebang(struct wanted *w, struct slice *code)
{
    struct shebang s;
    bool valid = shebang_parse(w->script, &s);
    w->flags = valid && s.engine.ptr ? 0 : SCRIPT_UNDECLARED;
    *code = s.code;
    if (!valid) {
        fault(w->c, "Invalid script shebang", SLICE(""));
    } else if (s.engine.ptr) {
        valid = read_words(w->c, &s, &w->flags);
    }
    shebang_deinit(&s);
    return valid;
}

/* ---- finding and making ---- */

static bool compile(lua_State *L, struct wanted *w)
{
    struct slice code;
    if (!read_shebang(w, &code)) {
        return false;
    }
    if (vm_load(L, code, "@user_script") != 0) {
        reply_errorf(w->c->reply, "ERR Error compiling script (new function): %s",
                     lua_tostring(L, -1));
        lua_pop(L, 1);
        return false;
    }
    remember(L, w);
    return true;
}

/* Pushes the function; or replies why there is none. */
static bool push_script(lua_State *L, struct wanted *w)
{
    if (push_cached(L, w)) {
        return true;
    }
    if (w->script.ptr) {
        return compile(L, w);
    }
    reply_error(w->c->reply, "NOSCRIPT No matching script. Please use EVAL.");
    return false;
}

/* A SHA1 in any case; false when it cannot be one. */
static bool read_sha(struct slice text, char sha[SHA_CHARS])
{
    if (text.len != SHA_CHARS) {
        return false;
    }
    for (int i = 0; i < SHA_CHARS; i++) {
        char c = text.ptr[i];
        sha[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return true;
}

/* ---- verbs ---- */

struct eval {
    struct script_run run;
    struct wanted wanted;
};

static bool push_function(lua_State *L, struct script_run *run)
{
    struct eval *e = (struct eval *)run;
    if (!push_script(L, &e->wanted)) {
        return false;
    }
    run->flags = e->wanted.flags;
    return run_is_allowed(run);
}

static void run_script(struct call *c, bool by_sha, bool read_only, struct debugger *debugger)
    REQUIRES(keyspace_lock)
{
    struct eval e = {.run = {.debugger = debugger,
                             .c = c,
                             .command_is_ro = read_only,
                             .push_function = push_function},
                     .wanted = {.c = c}};
    if (by_sha && !read_sha(c->argv[1], e.wanted.sha)) {
        reply_error(c->reply, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    if (!run_parse_keys(&e.run)) {
        return;
    }
    if (!by_sha) {
        e.wanted.script = c->argv[1];
        recent_sha1(c->argv[1], e.wanted.sha);
    }
    e.run.name = slice_of(e.wanted.sha, SHA_CHARS);
    call_observe(c);
    world_enter(&e.run);
    while (!run_execute(&cache.vm, &e.run)) {
    }
    world_leave(&e.run);
}

void eval_run(struct call *c, bool by_sha, bool read_only)
{
    if (likely(!c->session->script_debug)) {
        run_script(c, by_sha, read_only, NULL);
        return;
    }
    if (by_sha) {
        reply_error(c->reply, "ERR Please use EVAL instead of EVALSHA for debugging");
        return;
    }
    struct debugger *d = debugger_begin(c);
    if (d) {
        run_script(c, by_sha, read_only, d);
        debugger_end(d);
    }
}

/* Called protected. */
static int load_script(lua_State *L)
{
    struct wanted *w = lua_touserdata(L, 1);
    if (push_script(L, w)) {
        reply_bulk(w->c->reply, slice_of(w->sha, SHA_CHARS));
    }
    return 0;
}

void eval_load(struct call *c, struct slice script)
{
    lua_State *L = cache.vm.L;
    struct wanted w = {.c = c, .script = script};
    struct reply_mark before = reply_mark(c->reply);
    api_sha1_hex(script.ptr, script.len, w.sha);
    if (lua_cpcall(L, load_script, &w) != 0) {
        reply_rewind(c->reply, before);
        run_reply_error(L, c, NULL);
    }
    lua_settop(L, 0);
}

/* Called protected. */
static int look_up(lua_State *L)
{
    struct wanted *w = lua_touserdata(L, 1);
    w->found = push_cached(L, w);
    return 0;
}

/* Finds the script of a SHA1 and its flags. */
static bool find(struct slice sha, struct wanted *w)
{
    lua_State *L = cache.vm.L;
    if (!read_sha(sha, w->sha)) {
        return false;
    }
    bool found = lua_cpcall(L, look_up, w) == 0 && w->found;
    lua_settop(L, 0);
    return found;
}

bool eval_exists(struct slice sha)
{
    struct wanted w = {.c = NULL};
    return find(sha, &w);
}

unsigned eval_flags(const struct call *c, bool by_sha)
{
    struct wanted w = {.script = c->argv[1]};
    struct slice code;
    bool known = by_sha ? find(c->argv[1], &w) : read_shebang(&w, &code);
    return known ? w.flags : SCRIPT_UNDECLARED;
}

static void extend(lua_State *L)
{
    run_install(L);
    static const char *const keys[] = {&functions_key, &flags_key};
    for (int i = 0; i < 2; i++) {
        lua_pushlightuserdata(L, (void *)keys[i]);
        lua_newtable(L);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    api_install_for_eval(L);
}

void eval_setup(void)
{
    vm_init(&cache.vm, extend);
}

void eval_teardown(void)
{
    recent_forget();
    memset(cache.found, 0, sizeof(cache.found));
    vm_deinit(&cache.vm);
    atomic_store(&cache.count, 0);
}

void eval_flush(void)
{
    assert(!run_current());
    eval_teardown();
    eval_setup();
}

void eval_add_figures(struct script_figures *figures)
{
    figures->vm_eval_bytes = vm_bytes(&cache.vm);
    figures->scripts = atomic_load_explicit(&cache.count, memory_order_relaxed);
}
