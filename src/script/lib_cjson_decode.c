/* cjson.decode: JSON as a Lua value. Texts of errors as the oracle's. See lib_priv.h.
 *
 * A scanner gives tokens, a descent reads values; both work on the argument's bytes, which end with
 * Lua's NUL. */
#include "script/lib_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum token {
    T_OBJ_BEGIN,
    T_OBJ_END,
    T_ARR_BEGIN,
    T_ARR_END,
    T_STRING,
    T_NUMBER,
    T_BOOLEAN,
    T_NULL,
    T_COLON,
    T_COMMA,
    T_END,
    T_ERROR,
};

static const char *const token_names[] = {
    "T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_STRING", "T_NUMBER",
    "T_BOOLEAN",   "T_NULL",    "T_COLON",     "T_COMMA",   "T_END",
};

struct decoder {
    lua_State *L;
    const struct lib_json_settings *settings;
    const char *start;
    const char *at; /* behind the token */
    const char *end;
    int depth;
    uint32_t steps;
    struct lib_bytes text; /* T_STRING's */
    enum token token;
    const char *token_at;
    const char *fault; /* T_ERROR's */
    lua_Number number; /* T_NUMBER's */
    bool boolean;      /* T_BOOLEAN's */
};

static void read_value(struct decoder *d);

/* ---- tokens ---- */

static void set_fault(struct decoder *d, const char *at, const char *fault)
{
    d->token = T_ERROR;
    d->token_at = at;
    d->fault = fault;
}

/* Four hexadecimal digits at `p`, or -1. */
static int32_t read_hex4(const char *p, const char *end)
{
    int32_t value = 0;
    if (end - p < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

static void put_utf8(struct lib_bytes *out, uint32_t c)
{
    if (c < 0x80) {
        lib_bytes_put(out, (char)c);
        return;
    }
    if (c < 0x800) {
        lib_bytes_put(out, (char)(0xc0 | c >> 6));
    } else {
        if (c < 0x10000) {
            lib_bytes_put(out, (char)(0xe0 | c >> 12));
        } else {
            lib_bytes_put(out, (char)(0xf0 | c >> 18));
            lib_bytes_put(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        lib_bytes_put(out, (char)(0x80 | (c >> 6 & 0x3f)));
    }
    lib_bytes_put(out, (char)(0x80 | (c & 0x3f)));
}

/* A \u escape, whose backslash is at `p`; a character beyond 0xffff is two of them. Returns where
 * the text goes on, or NULL. */
static const char *read_unicode(struct decoder *d, const char *p)
{
    int32_t high = read_hex4(p + 2, d->end);
    if (high < 0 || (high & 0xfc00) == 0xdc00) {
        return NULL;
    }
    if ((high & 0xfc00) != 0xd800) {
        put_utf8(&d->text, (uint32_t)high);
        return p + 6;
    }
    if (d->end - p < 12 || p[6] != '\\' || p[7] != 'u') {
        return NULL;
    }
    int32_t low = read_hex4(p + 8, d->end);
    if (low < 0 || (low & 0xfc00) != 0xdc00) {
        return NULL;
    }
    put_utf8(&d->text, (((uint32_t)high & 0x3ff) << 10 | ((uint32_t)low & 0x3ff)) + 0x10000);
    return p + 12;
}

/* What a one-letter escape stands for, 0 for none. */
static char unescape(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 't':
        return '\t';
    case 'n':
        return '\n';
    case 'f':
        return '\f';
    case 'r':
        return '\r';
    default:
        return 0;
    }
}

/* The string whose opening quote is at `p`. */
static void scan_string(struct decoder *d, const char *p)
{
    d->text.len = 0;
    p++;
    while (*p && *p != '"') { /* a NUL ends the text, wherever it is */
        lib_step(d->L, &d->steps);
        if (*p != '\\') {
            lib_bytes_put(&d->text, *p++);
            continue;
        }
        char letter = p + 1 < d->end ? p[1] : 0;
        if (letter == 'u') {
            const char *next = read_unicode(d, p);
            if (!next) {
                set_fault(d, p, "invalid unicode escape code");
                return;
            }
            p = next;
        } else if (unescape(letter)) {
            lib_bytes_put(&d->text, unescape(letter));
            p += 2;
        } else {
            set_fault(d, p, "invalid escape code");
            return;
        }
    }
    if (!*p) {
        set_fault(d, p, "unexpected end of string");
        return;
    }
    d->token = T_STRING;
    d->at = p + 1;
}

/* What strtod reads and JSON does not have: hexadecimal, leading zeros, infinities, NaN. */
static bool is_foreign_number(const char *p)
{
    if (*p == '+') {
        return true;
    }
    if (*p == '-') {
        p++;
    }
    if (*p == '0') {
        return (p[1] | 0x20) == 'x' || (p[1] >= '0' && p[1] <= '9');
    }
    if (*p >= '1' && *p <= '9') {
        return false;
    }
    return strncasecmp(p, "inf", 3) == 0 || strncasecmp(p, "nan", 3) == 0;
}

/* Digits that a number holds exactly. */
#define EXACT_DIGITS 15

/* Reads a whole number of a few digits, as most are; NULL where strtod is to look at it. */
static const char *read_short_number(const char *p, lua_Number *number)
{
    int64_t value = 0;
    int count = 0;
    for (; count < EXACT_DIGITS && p[count] >= '0' && p[count] <= '9'; count++) {
        value = value * 10 + (p[count] - '0');
    }
    char next = p[count];
    if (count == 0 || (next >= '0' && next <= '9') || next == '.' || (next | 0x20) == 'e' ||
        (next | 0x20) == 'x') {
        return NULL;
    }
    *number = (lua_Number)value;
    return p + count;
}

static void scan_number(struct decoder *d, const char *p)
{
    char *behind;
    if (!d->settings->decode_invalid && is_foreign_number(p)) {
        set_fault(d, p, "invalid number");
        return;
    }
    const char *short_behind = read_short_number(p, &d->number);
    if (short_behind) {
        d->token = T_NUMBER;
        d->at = short_behind;
        return;
    }
    d->number = strtod(p, &behind);
    if (behind == p) {
        set_fault(d, p, "invalid number");
        return;
    }
    d->token = T_NUMBER;
    d->at = behind;
}

static bool scan_word(struct decoder *d, const char *p, const char *word, enum token token)
{
    size_t len = strlen(word);
    if ((size_t)(d->end - p) < len || memcmp(p, word, len) != 0) {
        return false;
    }
    d->token = token;
    d->at = p + len;
    return true;
}

/* A token that begins with anything else. */
static void scan_letters(struct decoder *d, const char *p)
{
    d->boolean = *p == 't';
    if (scan_word(d, p, "true", T_BOOLEAN) || scan_word(d, p, "false", T_BOOLEAN) ||
        scan_word(d, p, "null", T_NULL)) {
        return;
    }
    if (d->settings->decode_invalid && is_foreign_number(p)) {
        scan_number(d, p);
        return;
    }
    set_fault(d, p, "invalid token");
}

static void next_token(struct decoder *d)
{
    static const char single[] = "{}[]:,";
    static const enum token single_tokens[] = {T_OBJ_BEGIN, T_OBJ_END, T_ARR_BEGIN,
                                               T_ARR_END,   T_COLON,   T_COMMA};
    const char *p = d->at;
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') {
        lib_step(d->L, &d->steps);
        p++;
    }
    lib_step(d->L, &d->steps);
    d->token_at = p;
    const char *found = *p ? strchr(single, *p) : NULL;
    if (*p == 0) {
        d->token = T_END;
    } else if (found) {
        d->token = single_tokens[found - single];
        d->at = p + 1;
    } else if (*p == '"') {
        scan_string(d, p);
    } else if (*p == '-' || (*p >= '0' && *p <= '9')) {
        scan_number(d, p);
    } else {
        scan_letters(d, p);
    }
}

/* ---- values ---- */

NORETURN static void refuse(struct decoder *d, const char *expected)
{
    luaL_error(d->L, "Expected %s but found %s at character %d", expected,
               d->token == T_ERROR ? d->fault : token_names[d->token],
               (int)(d->token_at - d->start) + 1);
    __builtin_unreachable();
}

static void descend(struct decoder *d)
{
    d->depth++;
    if (d->depth > d->settings->decode_depth_max || !lua_checkstack(d->L, 8)) {
        luaL_error(d->L, "Found too many nested data structures (%d) at character %d", d->depth,
                   (int)(d->at - d->start));
    }
}

static void read_object(struct decoder *d)
{
    descend(d);
    lua_newtable(d->L);
    next_token(d);
    bool empty = d->token == T_OBJ_END;
    while (!empty) {
        if (d->token != T_STRING) {
            refuse(d, "object key string");
        }
        lib_bytes_push(&d->text);
        next_token(d);
        if (d->token != T_COLON) {
            refuse(d, "colon");
        }
        next_token(d);
        read_value(d);
        lua_rawset(d->L, -3);
        next_token(d);
        if (d->token == T_OBJ_END) {
            break;
        }
        if (d->token != T_COMMA) {
            refuse(d, "comma or object end");
        }
        next_token(d);
    }
    d->depth--;
}

static void read_array(struct decoder *d)
{
    descend(d);
    lua_newtable(d->L);
    next_token(d);
    bool empty = d->token == T_ARR_END;
    for (int i = 1; !empty; i++) {
        read_value(d);
        lua_rawseti(d->L, -2, i);
        next_token(d);
        if (d->token == T_ARR_END) {
            break;
        }
        if (d->token != T_COMMA) {
            refuse(d, "comma or array end");
        }
        next_token(d);
    }
    d->depth--;
}

/* Pushes the value that begins with the token that was read last. */
static void read_value(struct decoder *d)
{
    switch (d->token) {
    case T_STRING:
        lib_bytes_push(&d->text);
        break;
    case T_NUMBER:
        lua_pushnumber(d->L, d->number);
        break;
    case T_BOOLEAN:
        lua_pushboolean(d->L, d->boolean);
        break;
    case T_NULL:
        lua_pushlightuserdata(d->L, NULL);
        break;
    case T_OBJ_BEGIN:
        read_object(d);
        break;
    case T_ARR_BEGIN:
        read_array(d);
        break;
    default:
        refuse(d, "value");
    }
}

int lib_json_decode(lua_State *L)
{
    size_t len;
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    const char *json = luaL_checklstring(L, 1, &len);
    /* UTF-8 and all it contains has no NUL among the first two bytes of a value. */
    if (len >= 2 && (!json[0] || !json[1])) {
        return luaL_error(L, "JSON parser does not support UTF-16 or UTF-32");
    }
    struct decoder d = {
        .L = L, .settings = lib_json_settings(L), .start = json, .at = json, .end = json + len};
    lib_bytes_init(&d.text, L);
    next_token(&d);
    read_value(&d);
    next_token(&d);
    if (d.token != T_END) {
        refuse(&d, "the end");
    }
    return 1;
}
