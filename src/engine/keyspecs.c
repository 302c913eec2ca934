/* Where the keys of a request stand: the notation of command tables, the classic (first, last,
 * step) that follows from it, and the extractor that everybody uses. */
#include "engine/keyspecs_priv.h"

#include "base/num.h"

#include <assert.h>
#include <limits.h>

/* ---- The notation */

struct cursor {
    const char *pos;
};

/* Steps over `text` when it comes next. */
static bool cursor_accept(struct cursor *in, const char *text)
{
    size_t len = strlen(text);
    if (strncmp(in->pos, text, len) != 0) {
        return false;
    }
    in->pos += len;
    return true;
}

/* Reads a small decimal number. */
static bool cursor_number(struct cursor *in, int *value)
{
    size_t len = in->pos[0] == '-';
    while (in->pos[len] >= '0' && in->pos[len] <= '9') {
        len++;
    }
    int64_t number;
    if (!num_parse_i64(slice_of(in->pos, len), &number) || number < INT16_MIN ||
        number > INT16_MAX) {
        return false;
    }
    in->pos += len;
    *value = (int)number;
    return true;
}

static bool cursor_three_numbers(struct cursor *in, int *a, int *b, int *c)
{
    return cursor_number(in, a) && cursor_accept(in, ",") && cursor_number(in, b) &&
           cursor_accept(in, ",") && cursor_number(in, c);
}

static bool parse_begin(struct cursor *in, struct key_spec *spec)
{
    if (cursor_accept(in, "?")) {
        spec->begin = KEY_BEGIN_UNKNOWN;
        return true;
    }
    if (cursor_accept(in, "i")) {
        spec->begin = KEY_BEGIN_INDEX;
        return cursor_number(in, &spec->index) && spec->index > 0;
    }
    if (!cursor_accept(in, "kw:")) {
        return false;
    }
    spec->begin = KEY_BEGIN_KEYWORD;
    size_t len = strcspn(in->pos, "@");
    if (len == 0 || len >= sizeof(spec->keyword)) {
        return false;
    }
    memcpy(spec->keyword, in->pos, len);
    spec->keyword[len] = '\0';
    in->pos += len;
    return cursor_accept(in, "@") && cursor_number(in, &spec->index) && spec->index != 0;
}

static bool parse_find(struct cursor *in, struct key_spec *spec)
{
    if (cursor_accept(in, "?")) {
        spec->find = KEY_FIND_UNKNOWN;
        return true;
    }
    if (cursor_accept(in, "r")) {
        spec->find = KEY_FIND_RANGE;
        return cursor_three_numbers(in, &spec->last, &spec->step, &spec->limit) && spec->step > 0 &&
               spec->limit >= 0;
    }
    if (cursor_accept(in, "n")) {
        spec->find = KEY_FIND_KEYNUM;
        return cursor_three_numbers(in, &spec->keynum_index, &spec->first_key,
                                    &spec->keynum_step) &&
               spec->keynum_index >= 0 && spec->first_key > 0 && spec->keynum_step > 0;
    }
    return false;
}

static const struct {
    const char *name;
    uint32_t flag;
} key_flag_names[] = {
    {"RO", KEY_RO},
    {"RW", KEY_RW},
    {"OW", KEY_OW},
    {"RM", KEY_RM},
    {"ACCESS", KEY_ACCESS},
    {"UPDATE", KEY_UPDATE},
    {"INSERT", KEY_INSERT},
    {"DELETE", KEY_DELETE},
    {"NOT_KEY", KEY_NOT_KEY},
    {"INCOMPLETE", KEY_INCOMPLETE},
    {"VARIABLE_FLAGS", KEY_VARIABLE_FLAGS},
};

static bool parse_flags(struct cursor *in, struct key_spec *spec)
{
    do {
        struct slice word = slice_of(in->pos, strcspn(in->pos, "+; "));
        uint32_t flag = 0;
        for (size_t i = 0; i < sizeof(key_flag_names) / sizeof(key_flag_names[0]); i++) {
            if (slice_equal(word, slice_cstr(key_flag_names[i].name))) {
                flag = key_flag_names[i].flag;
            }
        }
        if (flag == 0) {
            return false;
        }
        spec->flags |= flag;
        in->pos += word.len;
    } while (cursor_accept(in, "+"));
    return true;
}

bool keyspecs_parse(const char *text, struct command *c, const char **error)
{
    struct cursor in = {text};
    c->spec_count = 0;
    do {
        while (cursor_accept(&in, " ")) {
        }
        if (c->spec_count == COMMAND_MAX_KEY_SPECS) {
            *error = "too many key specs";
            return false;
        }
        struct key_spec *spec = &c->specs[c->spec_count++];
        memset(spec, 0, sizeof(*spec));
        if (!parse_begin(&in, spec) || !cursor_accept(&in, "/") || !parse_find(&in, spec) ||
            !cursor_accept(&in, "/") || !parse_flags(&in, spec)) {
            *error = "malformed key spec";
            return false;
        }
    } while (cursor_accept(&in, ";"));
    if (*in.pos != '\0') {
        *error = "text after the key specs";
        return false;
    }
    return true;
}

/* ---- The extractor */

/* Collects places; counts on when the caller's room is used up. */
struct places {
    struct key_place *places;
    int max;
    int count;
};

static void places_add(struct places *out, int index, uint32_t flags)
{
    if (out->count < out->max) {
        out->places[out->count] = (struct key_place){.index = index, .flags = flags};
    }
    out->count++;
}

/* The argument at which the spec's keys begin; 0 when its keyword is not there (the spec then names
 * no key), -1 when nobody can tell. */
static int spec_begin(const struct key_spec *spec, const struct slice *argv, int argc)
{
    switch (spec->begin) {
    case KEY_BEGIN_INDEX:
        return spec->index;
    case KEY_BEGIN_KEYWORD:
        /* A keyword in the last place has no key behind it. */
        if (spec->index > 0) {
            for (int i = spec->index; i < argc - 1; i++) {
                if (slice_equal_nocase(argv[i], spec->keyword)) {
                    return i + 1;
                }
            }
        } else {
            for (int i = argc + spec->index; i > 1; i--) {
                if (slice_equal_nocase(argv[i], spec->keyword)) {
                    return i + 1;
                }
            }
        }
        return 0;
    case KEY_BEGIN_UNKNOWN:
        break;
    }
    return -1;
}

/* Finds the range's ends; false when they do not fit the arguments. An empty range has *last <
 * *first. */
static bool spec_range(const struct key_spec *spec, const struct slice *argv, int argc, int *first,
                       int *last, int *step)
{
    if (spec->find == KEY_FIND_RANGE) {
        *step = spec->step;
        if (spec->last >= 0) {
            *last = *first + spec->last;
        } else if (spec->limit <= 1) {
            *last = argc + spec->last;
        } else {
            *last = *first + (argc - *first) / spec->limit + spec->last;
        }
        return *first <= argc && *last >= *first - 1 && *last < argc;
    }
    if (spec->find != KEY_FIND_KEYNUM) {
        return false;
    }
    int64_t count;
    int count_at = *first + spec->keynum_index;
    if (count_at >= argc || !num_parse_i64(argv[count_at], &count) || count < 0) {
        return false;
    }
    *first += spec->first_key;
    *step = spec->keynum_step;
    if (count > (argc - *first + *step - 1) / *step) {
        return false;
    }
    *last = *first + ((int)count - 1) * *step;
    return *last < argc;
}

static int find_by_specs(const struct command *c, const struct slice *argv, int argc,
                         struct places *out)
{
    for (int i = 0; i < c->spec_count; i++) {
        const struct key_spec *spec = &c->specs[i];
        int last, step;
        int first = spec_begin(spec, argv, argc);
        if (first == 0) {
            continue;
        }
        if (first < 0 || !spec_range(spec, argv, argc, &first, &last, &step)) {
            return -1;
        }
        /* Only a further spec may be empty ("PFMERGE dest"): the first range of a command has a
         * key. */
        if (last < first && spec->find == KEY_FIND_RANGE && i == 0) {
            return -1;
        }
        for (int k = first; k <= last; k += step) {
            places_add(out, k, spec->flags);
        }
    }
    return out->count;
}

int command_find_keys(const struct command *c, const struct slice *argv, int argc,
                      struct key_place *places, int max)
{
    assert(argc >= 0 && max >= 0);
    if (c->find_keys != NULL) {
        return c->find_keys(c, argv, argc, places, max);
    }
    struct places out = {places, max, 0};
    return find_by_specs(c, argv, argc, &out);
}

/* ---- Commands whose keys depend on their options */

/* SORT key [BY p] [LIMIT a b] [GET p ...] ... [STORE destination]: the last STORE counts. */
static int find_sort_keys(const struct command *c, const struct slice *argv, int argc,
                          struct key_place *places, int max)
{
    assert(c->spec_count > 0);
    if (argc < 2) {
        return -1;
    }
    struct places out = {places, max, 0};
    places_add(&out, 1, c->specs[0].flags);
    int store = 0;
    for (int i = 2; i < argc; i++) {
        if (slice_equal_nocase(argv[i], "limit")) {
            i += 2;
        } else if (slice_equal_nocase(argv[i], "get") || slice_equal_nocase(argv[i], "by")) {
            i++;
        } else if (slice_equal_nocase(argv[i], "store") && i + 1 < argc) {
            store = ++i;
        }
    }
    if (store > 0 && (c->flags & CMD_WRITE)) {
        places_add(&out, store, KEY_OW | KEY_UPDATE);
    }
    return out.count;
}

/* MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH p] [AUTH2 u p] [KEYS key ...]: KEYS
 * only with an empty third argument. */
static int find_migrate_keys(const struct command *c, const struct slice *argv, int argc,
                             struct key_place *places, int max)
{
    assert(c->spec_count > 0);
    if (argc < 6) {
        return -1;
    }
    uint32_t flags = c->specs[0].flags & ~(uint32_t)KEY_INCOMPLETE;
    struct places out = {places, max, 0};
    int first = 3, last = 3;
    for (int i = 6; i < argc; i++) {
        if (slice_equal_nocase(argv[i], "auth")) {
            i++;
        } else if (slice_equal_nocase(argv[i], "auth2")) {
            i += 2;
        } else if (slice_equal_nocase(argv[i], "keys")) {
            if (argv[3].len > 0 || i + 1 == argc) {
                return -1;
            }
            first = i + 1;
            last = argc - 1;
            break;
        }
    }
    for (int i = first; i <= last; i++) {
        places_add(&out, i, flags);
    }
    return out.count;
}

/* SET key value ... GET reads the old value as well. */
static int find_set_keys(const struct command *c UNUSED, const struct slice *argv, int argc,
                         struct key_place *places, int max)
{
    if (argc < 2) {
        return -1;
    }
    uint32_t flags = KEY_OW | KEY_UPDATE;
    for (int i = 3; i < argc; i++) {
        if (slice_equal_nocase(argv[i], "get")) {
            flags = KEY_RW | KEY_ACCESS | KEY_UPDATE;
        }
    }
    struct places out = {places, max, 0};
    places_add(&out, 1, flags);
    return out.count;
}

/* BITFIELD key [GET e o] [SET e o v] [INCRBY e o i] [OVERFLOW w]: with nothing but GET it only
 * reads. */
static int find_bitfield_keys(const struct command *c UNUSED, const struct slice *argv, int argc,
                              struct key_place *places, int max)
{
    if (argc < 2) {
        return -1;
    }
    bool reads_only = true;
    for (int i = 2; i < argc && reads_only; i++) {
        reads_only = i + 2 < argc && slice_equal_nocase(argv[i], "get");
        i += 2;
    }
    struct places out = {places, max, 0};
    places_add(&out, 1, reads_only ? KEY_RO | KEY_ACCESS : KEY_RW | KEY_ACCESS | KEY_UPDATE);
    return out.count;
}

/* XREADGROUP [GROUP g c] [COUNT n] [BLOCK ms] [NOACK] STREAMS key ... id ...: a group or consumer
 * may be named STREAMS. */
static int find_xreadgroup_keys(const struct command *c, const struct slice *argv, int argc,
                                struct key_place *places, int max)
{
    assert(c->spec_count > 0);
    int i = 1;
    while (i < argc && !slice_equal_nocase(argv[i], "streams")) {
        bool one = slice_equal_nocase(argv[i], "count") || slice_equal_nocase(argv[i], "block");
        i += slice_equal_nocase(argv[i], "group") ? 3 : one ? 2 : 1;
    }
    int keys = (argc - i - 1) / 2;
    if (keys <= 0) {
        return -1;
    }
    struct places out = {places, max, 0};
    for (int k = 1; k <= keys; k++) {
        places_add(&out, i + k, c->specs[0].flags);
    }
    return out.count;
}

/* BITOP LSHIFT|RSHIFT destination key bits (KeyDB's): the count is no key, as it would be by the
 * specs. */
static int find_bitop_keys(const struct command *c, const struct slice *argv, int argc,
                           struct key_place *places, int max)
{
    struct places out = {places, max, 0};
    bool shifts = argc > 1 &&
                  (slice_equal_nocase(argv[1], "lshift") || slice_equal_nocase(argv[1], "rshift"));
    if (!shifts) {
        return find_by_specs(c, argv, argc, &out);
    }
    assert(c->spec_count == 2);
    if (argc != 5) {
        return -1;
    }
    places_add(&out, 2, c->specs[0].flags);
    places_add(&out, 3, c->specs[1].flags);
    return out.count;
}

/* KEYDB.NHSET path value [value ...], KEYDB.NHGET [format] path: the key is a part of the path. */
static int find_nested_keys(const struct command *c, const struct slice *argv UNUSED, int argc,
                            struct key_place *places, int max)
{
    assert(c->spec_count == 1);
    if (!command_arity_fits(c, argc)) {
        return -1;
    }
    bool writes = c->flags & CMD_WRITE;
    struct places out = {places, max, 0};
    places_add(&out, writes ? 1 : argc - 1, c->specs[0].flags | KEY_OF_PATH);
    return out.count;
}

/* GEORADIUS[BYMEMBER] key ... [STORE k|STOREDIST k]: the last of them counts. */
static int find_georadius_keys(const struct command *c, const struct slice *argv, int argc,
                               struct key_place *places, int max)
{
    assert(c->spec_count == 3);
    if (argc < 2) {
        return -1;
    }
    int store = 0;
    for (int i = c->specs[1].index; i + 1 < argc; i++) {
        if (slice_equal_nocase(argv[i], "store") || slice_equal_nocase(argv[i], "storedist")) {
            store = ++i;
        }
    }
    struct places out = {places, max, 0};
    places_add(&out, 1, c->specs[0].flags);
    if (store > 0) {
        places_add(&out, store, c->specs[1].flags);
    }
    return out.count;
}

/* ---- What follows from the specs */

static const struct {
    const char *command;
    int (*find_keys)(const struct command *c, const struct slice *argv, int argc,
                     struct key_place *places, int max);
    bool only; /* the classic range does not tell the keys of every request */
} special_finders[] = {
    {"sort", find_sort_keys, true},
    {"sort_ro", find_sort_keys, true},
    {"migrate", find_migrate_keys, true},
    {"set", find_set_keys, false},
    {"bitfield", find_bitfield_keys, false},
    {"bitop", find_bitop_keys, true},
    {"keydb.nhset", find_nested_keys, true},
    {"keydb.nhget", find_nested_keys, true},
    {"xreadgroup", find_xreadgroup_keys, true},
    {"georadius", find_georadius_keys, true},
    {"georadiusbymember", find_georadius_keys, true},
};

static bool spec_is_plain(const struct key_spec *spec)
{
    return spec->begin == KEY_BEGIN_INDEX && spec->find == KEY_FIND_RANGE;
}

/* The classic first, last, step of COMMAND INFO: one plain spec as it is, or neighbouring plain
 * specs with step 1 joined. Returns true when they tell all keys there are. */
static bool derive_classic_range(struct command *c)
{
    c->first_key = c->last_key = c->key_step = 0;
    bool complete = true;
    int plain = 0;
    for (int i = 0; i < c->spec_count; i++) {
        const struct key_spec *spec = &c->specs[i];
        if (!spec_is_plain(spec)) {
            complete = false;
            continue;
        }
        int last = spec->last >= 0 ? spec->index + spec->last : spec->last;
        if (plain == 0) {
            c->first_key = (int16_t)spec->index;
            c->last_key = (int16_t)last;
            c->key_step = (int16_t)spec->step;
        } else if (c->key_step == 1 && spec->step == 1 && spec->index == c->last_key + 1) {
            c->last_key = (int16_t)last;
        } else {
            complete = false;
        }
        if (spec->limit > 1) {
            complete = false;
        }
        plain++;
    }
    return complete;
}

void keyspecs_summarise(struct command *c)
{
    c->simple_keys = derive_classic_range(c);
    c->find_keys = NULL;
    for (int i = 0; i < c->spec_count; i++) {
        if (!spec_is_plain(&c->specs[i])) {
            c->flags |= CMD_MOVABLE_KEYS;
        }
    }
    for (size_t i = 0; i < sizeof(special_finders) / sizeof(special_finders[0]); i++) {
        if (c->spec_count > 0 && c->parent == NULL &&
            strcmp(c->row->name, special_finders[i].command) == 0) {
            c->find_keys = special_finders[i].find_keys;
            c->simple_keys = c->simple_keys && !special_finders[i].only;
        }
    }
}
