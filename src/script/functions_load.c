/* What a library does while it is loaded: its first line, redis.register_function. See functions.h.
 */
#include "script/functions.h"

#include "base/mem.h"
#include "script/api.h"
#include "script/shebang.h"

static struct library *loading;

void functions_set_loading(struct library *l)
{
    loading = l;
}

#define NAME_TEXT                                                                                  \
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one " \
    "character long"

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool fits =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!fits) {
            return false;
        }
    }
    return name.len > 0;
}

/* ---- the first line ---- */

static bool read_name(const struct shebang *s, struct library *l, struct buf *error)
{
    for (int i = 1; i < s->count; i++) {
        struct slice name;
        if (!shebang_word_is(s->words[i], "name=", &name)) {
            buf_append_cstr(error, "Invalid metadata value given: ");
            buf_append_slice(error, s->words[i]);
            return false;
        }
        if (l->name) {
            buf_append_cstr(error,
                            "Invalid metadata value, name argument was given multiple times");
            return false;
        }
        if (!is_name(name)) {
            buf_append_cstr(error, NAME_TEXT);
            return false;
        }
        l->name = mem_dup(name.ptr, name.len);
    }
    if (!l->name) {
        buf_append_cstr(error, "Library name was not given");
    }
    return l->name != NULL;
}

bool functions_read_metadata(struct slice whole, struct library *l, struct slice *code,
                             struct buf *error)
{
    struct shebang s;
    bool valid = shebang_parse(whole, &s);
    if (!valid) {
        buf_append_cstr(error, "Invalid library metadata");
    } else if (!s.engine.ptr) {
        buf_append_cstr(error, "Missing library metadata");
        valid = false;
    } else {
        valid = read_name(&s, l, error);
        if (valid && !slice_equal_nocase(s.engine, "lua")) {
            buf_append_cstr(error, "Engine '");
            buf_append_slice(error, s.engine);
            buf_append_cstr(error, "' not found");
            valid = false;
        }
    }
    *code = s.code;
    shebang_deinit(&s);
    return valid;
}

bool functions_name_of(struct slice whole, struct buf *name)
{
    struct library l = {0};
    struct buf ignored = {0};
    struct slice code;
    bool valid = functions_read_metadata(whole, &l, &code, &ignored);
    if (valid) {
        buf_append_cstr(name, l.name);
    }
    mem_free(l.name);
    buf_deinit(&ignored);
    return valid;
}

/* ---- redis.register_function ---- */

#define REGISTER "redis.register_function"

static int fail(lua_State *L, const char *text)
{
    lua_pushliteral(L, "ERR ");
    lua_pushstring(L, text);
    lua_concat(L, 2);
    run_push_error(L, lua_tostring(L, -1));
    return lua_error(L);
}

/* The flags of the table on top of the stack. */
static unsigned read_flags(lua_State *L)
{
    unsigned flags = 0;
    for (int i = 1;; i++) {
        struct slice name;
        lua_rawgeti(L, -1, i);
        int type = lua_type(L, -1);
        name.ptr = lua_tolstring(L, -1, &name.len);
        unsigned flag = type == LUA_TSTRING ? script_flag_of(name) : 0;
        lua_pop(L, 1);
        if (type == LUA_TNIL) {
            return flags;
        }
        if (!flag) {
            fail(L, "unknown flag given");
        }
        flags |= flag;
    }
}

/* Arguments of the C function, read: name and callback at stack places, flags, description. */
struct registration {
    int name, callback, description; /* 0: not given */
    unsigned flags;
};

/* One named argument: its key and value are on top, and stay. */
static void read_named(lua_State *L, struct registration *r)
{
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
    if (strcmp(key, "function_name") == 0) {
        if (!lua_isstring(L, -1)) {
            fail(L, "function_name argument given to " REGISTER " must be a string");
        }
        lua_pushvalue(L, -1);
        lua_replace(L, 2);
        r->name = 2;
    } else if (strcmp(key, "description") == 0) {
        if (!lua_isstring(L, -1)) {
            fail(L, "description argument given to " REGISTER " must be a string");
        }
        lua_pushvalue(L, -1);
        lua_replace(L, 4);
        r->description = 4;
    } else if (strcmp(key, "callback") == 0) {
        if (!lua_isfunction(L, -1)) {
            fail(L, "callback argument given to " REGISTER " must be a function");
        }
        lua_pushvalue(L, -1);
        lua_replace(L, 3);
        r->callback = 3;
    } else if (strcmp(key, "flags") == 0) {
        if (!lua_istable(L, -1)) {
            fail(L, "flags argument to " REGISTER " must be a table representing function flags");
        }
        r->flags = read_flags(L);
    } else {
        fail(L, "unknown argument given to " REGISTER);
    }
}

static void read_table(lua_State *L, struct registration *r)
{
    lua_settop(L, 4); /* the table; places for name, callback, description */
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        read_named(L, r);
        lua_pop(L, 1);
    }
    if (!r->name) {
        fail(L, REGISTER " must get a function name argument");
    }
    if (!r->callback) {
        fail(L, REGISTER " must get a callback argument");
    }
}

static void read_registration(lua_State *L, struct registration *r)
{
    int count = lua_gettop(L);
    if (count < 1 || count > 2) {
        fail(L, "wrong number of arguments to " REGISTER);
    }
    if (count == 1) {
        if (!lua_istable(L, 1)) {
            fail(L, "calling " REGISTER " with a single argument is only applicable to Lua table "
                    "(representing named arguments).");
        }
        read_table(L, r);
        return;
    }
    if (!lua_isstring(L, 1)) {
        fail(L, "first argument to " REGISTER " must be a string");
    }
    if (!lua_isfunction(L, 2)) {
        fail(L, "second argument to " REGISTER " must be a function");
    }
    r->name = 1;
    r->callback = 2;
}

static int register_function(lua_State *L)
{
    struct registration r = {0};
    struct slice name;
    if (!loading) {
        return fail(L, REGISTER " can only be called on FUNCTION LOAD command");
    }
    read_registration(L, &r);
    name.ptr = lua_tolstring(L, r.name, &name.len);
    if (!is_name(name)) {
        return fail(L, NAME_TEXT);
    }
    for (int i = 0; i < loading->count; i++) {
        if (slice_equal_nocase(name, loading->functions[i].name)) {
            return fail(L, "Function already exists in the library");
        }
    }
    lua_pushvalue(L, r.callback);
    int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    if (loading->count == loading->capacity) {
        loading->capacity = loading->capacity ? 2 * loading->capacity : 4;
        loading->functions = mem_realloc(loading->functions,
                                         (size_t)loading->capacity * sizeof(*loading->functions));
    }
    size_t len = 0;
    const char *description = r.description ? lua_tolstring(L, r.description, &len) : NULL;
    loading->functions[loading->count++] =
        (struct function){.name = mem_dup(name.ptr, name.len),
                          .description = description ? mem_dup(description, len) : NULL,
                          .flags = r.flags,
                          .ref = ref,
                          .library = loading};
    return 0;
}

/* ---- globals while loading ---- */

/* Gives the table on top a metatable that complains of missing names. */
static void complain(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, vm_no_such_global);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

void functions_push_load_globals(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_newtable(L);
    api_add_load_fields(L);
    lua_pushcfunction(L, register_function);
    lua_setfield(L, -2, "register_function");
    complain(L);
    freeze_table(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "keydb");
    lua_setfield(L, -2, "redis");
    complain(L);
}
