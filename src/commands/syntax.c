/* A recursive descent over the notation. Sequences are chains of nodes; a repetition group looks
 * back at the chain for what it repeats. */
#include "commands/syntax.h"

#include <assert.h>
#include <stdio.h>

/* Nested groups in the notation; real ones go to 5. */
#define SYNTAX_MAX_DEPTH 12

struct syntax_parser {
    const struct command *cmd;
    struct syntax_tree *tree;
    int keys; /* key arguments so far */
    int depth;
    bool failed;
};

/* A chain of sibling nodes. */
struct syntax_chain {
    int first, last;
};

static struct syntax_chain syntax_sequence(struct syntax_parser *p, struct slice text);
static int syntax_choice(struct syntax_parser *p, struct slice text);

/* ---- Text ---- */

static struct slice syntax_trim(struct slice s)
{
    while (s.len && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    while (s.len && s.ptr[s.len - 1] == ' ') {
        s.len--;
    }
    return s;
}

static struct slice syntax_between(const char *begin, const char *end)
{
    return slice_of(begin, (size_t)(end - begin));
}

static bool syntax_ends_with(struct slice s, const char *end)
{
    size_t len = strlen(end);
    return s.len >= len && memcmp(s.ptr + s.len - len, end, len) == 0;
}

/* The next item of `rest` (a word or a whole group), which moves behind it; len 0 at the end. */
static struct slice syntax_next_item(struct slice *rest)
{
    *rest = syntax_trim(*rest);
    size_t i = 0;
    int depth = 0;
    for (; i < rest->len; i++) {
        char ch = rest->ptr[i];
        depth += (ch == '[' || ch == '<') - (ch == ']' || ch == '>');
        if (depth == 0 && ch == ' ') {
            break;
        }
    }
    struct slice item = slice_of(rest->ptr, i);
    *rest = syntax_trim(slice_of(rest->ptr + i, rest->len - i));
    return item;
}

/* Cuts the text before the first '|' outside groups off `rest`. */
static struct slice syntax_next_alternative(struct slice *rest)
{
    int depth = 0;
    size_t i = 0;
    for (; i < rest->len; i++) {
        char ch = rest->ptr[i];
        depth += (ch == '[' || ch == '<') - (ch == ']' || ch == '>');
        if (depth == 0 && ch == '|') {
            break;
        }
    }
    struct slice alternative = syntax_trim(slice_of(rest->ptr, i));
    size_t used = i < rest->len ? i + 1 : i;
    *rest = slice_of(rest->ptr + used, rest->len - used);
    return alternative;
}

static bool syntax_is_group(struct slice item, char open)
{
    return item.len >= 2 && item.ptr[0] == open;
}

static struct slice syntax_inside(struct slice group)
{
    return syntax_trim(slice_of(group.ptr + 1, group.len - 2));
}

/* Tokens have no lower-case letters: "NX", "=", "*". */
static bool syntax_is_token(struct slice word)
{
    for (size_t i = 0; i < word.len; i++) {
        char ch = word.ptr[i];
        if ((ch >= 'a' && ch <= 'z') || ch == '[' || ch == '<') {
            return false;
        }
    }
    return word.len > 0;
}

static bool syntax_is_word(struct slice item)
{
    return item.len > 0 && item.ptr[0] != '[' && item.ptr[0] != '<';
}

/* Items of a text, groups counted as one. */
static int syntax_count_items(struct slice text)
{
    int count = 0;
    while (syntax_next_item(&text).len) {
        count++;
    }
    return count;
}

/* ---- Types ---- */

static bool syntax_listed(struct slice name, const char *const *list)
{
    for (; *list; list++) {
        if (slice_equal(name, slice_cstr(*list))) {
            return true;
        }
    }
    return false;
}

static bool syntax_group_is(const struct command *cmd, const char *group)
{
    return strcmp(cmd->row->group, group) == 0;
}

/* Names of values by type. */
// clang-format off
static const char *const syntax_keys[] = {
    "key", "key1", "key2", "source", "destination", "destkey", "newkey", "src", "dst",
    "sourcekey", "storekey", "storedistkey", NULL};
static const char *const syntax_doubles[] = {
    "longitude", "latitude", "radius", "width", "height", "score", NULL};
static const char *const syntax_integers[] = {
    "count", "milliseconds", "seconds", "numkeys", "weight", "offset", "cursor", "rank",
    "num-matches", "len", "index1", "index2", "ttl", "frequency", "index", "port",
    "destination-db", "numreplicas", "numlocal", "version", "limit", "db", "client-id",
    "entriesread", "entries-added", "bit", "bits", "ms", "cluster-bus-port", "slot", "start-slot",
    "end-slot", "config-epoch", "decrement", "protover", "numfields", "maxage", "stop",
    "min-match-len", "increment", "timeout", NULL};
// clang-format on

/* The type that a value's name and its command imply. */
static const char *syntax_value_type(const struct syntax_parser *p, struct slice name)
{
    bool ranked = syntax_group_is(p->cmd, "sorted-set") || syntax_group_is(p->cmd, "sorted_set");
    bool pops = ranked || syntax_group_is(p->cmd, "list");
    bool by_lex = strstr(p->cmd->row->name, "lex") != NULL;
    if (p->cmd->spec_count > 0 && syntax_listed(name, syntax_keys)) {
        return "key";
    }
    if (name.len > 9 && memcmp(name.ptr, "unix-time", 9) == 0) {
        return "unix-time";
    }
    if (slice_equal(name, SLICE("library-name-pattern"))) {
        return "string"; /* the other ones name keys, or stand alone */
    }
    if (slice_equal(name, SLICE("pattern")) || syntax_ends_with(name, "-pattern")) {
        return "pattern";
    }
    if (syntax_listed(name, syntax_doubles) || (pops && slice_equal(name, SLICE("timeout"))) ||
        (slice_equal(name, SLICE("increment")) && (ranked || strstr(p->cmd->row->name, "float")))) {
        return "double";
    }
    if (ranked && !by_lex && strstr(p->cmd->row->name, "store") == NULL &&
        (slice_equal(name, SLICE("min")) || slice_equal(name, SLICE("max")))) {
        return "double";
    }
    bool bounds = slice_equal(name, SLICE("start")) || slice_equal(name, SLICE("end"));
    if (syntax_listed(name, syntax_integers) || (bounds && !syntax_group_is(p->cmd, "stream"))) {
        return "integer";
    }
    return "string";
}

/* ---- Nodes ---- */

static struct syntax_node *syntax_node(struct syntax_parser *p, int index)
{
    assert(index >= 0 && index < p->tree->count);
    return &p->tree->nodes[index];
}

/* A new node; once there is no room the parse has failed, and the last node is used up again. */
static int syntax_add(struct syntax_parser *p, const char *type, struct slice text)
{
    struct syntax_tree *t = p->tree;
    if (t->count == SYNTAX_MAX_NODES) {
        p->failed = true;
        t->count--;
    }
    t->nodes[t->count] =
        (struct syntax_node){.type = type, .key_spec = -1, .child = -1, .next = -1, .text = text};
    return t->count++;
}

static void syntax_set_name(struct syntax_node *n, struct slice name)
{
    snprintf(n->name, sizeof(n->name), "%.*s", (int)(name.len < 1000 ? name.len : 1000), name.ptr);
}

/* A token's name: its letters in lower case; signs have names of their own. */
static void syntax_set_token_name(struct syntax_node *n, struct slice token)
{
    static const struct {
        const char *token, *name;
    } signs[] = {{"=", "equal"},
                 {"~", "approximately"},
                 {"*", "auto-id"},
                 {"$", "new-id"},
                 {"\"\"", "empty-string"}};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (slice_equal(token, slice_cstr(signs[i].token))) {
            syntax_set_name(n, slice_cstr(signs[i].name));
            return;
        }
    }
    syntax_set_name(n, token);
    for (char *ch = n->name; *ch; ch++) {
        if (*ch >= 'A' && *ch <= 'Z') {
            *ch = (char)(*ch - 'A' + 'a');
        }
    }
}

/* Names of choices that are known by another word than their parts. */
static const char *syntax_choice_name(const char *first_part)
{
    static const struct {
        const char *part, *name;
    } known[] = {{"nx", "condition"},  {"xx", "condition"},
                 {"gt", "comparison"}, {"seconds", "expiration"},
                 {"asc", "order"},     {"async", "flush-type"},
                 {"m", "unit"},        {"left", "where"},
                 {"before", "where"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(first_part, known[i].part) == 0) {
            return known[i].name;
        }
    }
    return NULL;
}

/* Names a block or choice after its parts. */
static void syntax_name_by_parts(struct syntax_parser *p, int index)
{
    struct syntax_node *n = syntax_node(p, index);
    const char *known = NULL;
    if (strcmp(n->type, "oneof") == 0) {
        known = syntax_choice_name(syntax_node(p, n->child)->name);
    }
    if (known) {
        syntax_set_name(n, slice_cstr(known));
        return;
    }
    size_t at = 0;
    for (int i = n->child; i >= 0 && at < sizeof(n->name); i = syntax_node(p, i)->next) {
        int wrote = snprintf(n->name + at, sizeof(n->name) - at, "%s%s", at ? "_" : "",
                             syntax_node(p, i)->name);
        at += (size_t)wrote;
    }
}

static int syntax_add_value(struct syntax_parser *p, struct slice word)
{
    const char *type = syntax_value_type(p, word);
    int index = syntax_add(p, type, word);
    struct syntax_node *n = syntax_node(p, index);
    syntax_set_name(n, word);
    if (strcmp(type, "key") == 0) {
        int last = p->cmd->spec_count - 1;
        n->key_spec = p->keys < last ? p->keys : last;
        p->keys++;
    } else if (strcmp(type, "pattern") == 0 && syntax_ends_with(word, "-pattern")) {
        /* SORT's: all of them are its second key spec. */
        n->key_spec = 1;
        p->keys = 2;
    }
    return index;
}

static int syntax_add_token(struct syntax_parser *p, struct slice token)
{
    int index = syntax_add(p, "pure-token", token);
    syntax_set_token_name(syntax_node(p, index), token);
    syntax_node(p, index)->token = token;
    return index;
}

/* A chain as one node: itself when it is one, else a block. -1 for an empty one. */
static int syntax_as_block(struct syntax_parser *p, struct syntax_chain chain, struct slice text)
{
    if (chain.first == chain.last) {
        return chain.first;
    }
    int index = syntax_add(p, "block", text);
    syntax_node(p, index)->child = chain.first;
    syntax_name_by_parts(p, index);
    return index;
}

/* ---- Choices ---- */

/* What the alternatives of a choice look like, as far as their meaning depends on it. */
struct syntax_shape {
    int alternatives;
    bool leading_token; /* the first one's first word is a token of the whole choice */
    bool plain_words;   /* all are single words in lower case: tokens in truth */
    bool plain_pairs;   /* all are two words in lower case: a token and its value */
};

static struct syntax_shape syntax_shape_of(struct slice text)
{
    struct syntax_shape shape = {.plain_words = true, .plain_pairs = true};
    bool others_have_tokens = false, second_is_token = false, starts_with_token = false;
    struct slice rest = text;
    int first_items = 0;
    while (rest.len) {
        struct slice alternative = syntax_next_alternative(&rest);
        int items = syntax_count_items(alternative);
        struct slice scan = alternative;
        struct slice word = syntax_next_item(&scan), second = syntax_next_item(&scan);
        bool plain = syntax_is_word(word) && !syntax_is_token(word);
        if (shape.alternatives++ == 0) {
            first_items = items;
            starts_with_token = syntax_is_token(word) && items > 1;
            second_is_token = syntax_is_token(second);
            shape.plain_words = plain && items == 1;
        } else {
            others_have_tokens = others_have_tokens || !plain;
            shape.plain_words = shape.plain_words && plain && items == 1;
        }
        shape.plain_pairs = shape.plain_pairs && plain && items == 2 && !syntax_is_token(second);
    }
    bool bare_others = !others_have_tokens && first_items == 2;
    shape.leading_token =
        shape.alternatives > 1 && starts_with_token && (second_is_token || bare_others);
    shape.plain_words = shape.plain_words && shape.alternatives > 1;
    shape.plain_pairs = shape.plain_pairs && shape.alternatives > 1;
    return shape;
}

static int syntax_alternative(struct syntax_parser *p, struct slice text,
                              const struct syntax_shape *shape)
{
    if (shape->plain_words) {
        return syntax_add_token(p, text);
    }
    if (shape->plain_pairs) {
        struct slice rest = text;
        struct slice token = syntax_next_item(&rest);
        int index = syntax_add_value(p, rest);
        syntax_node(p, index)->token = token;
        syntax_node(p, index)->text = text;
        return index;
    }
    return syntax_as_block(p, syntax_sequence(p, text), text);
}

static int syntax_choice_of(struct syntax_parser *p, struct slice text)
{
    struct syntax_shape shape = syntax_shape_of(text);
    if (shape.alternatives <= 1) {
        return syntax_as_block(p, syntax_sequence(p, text), text);
    }
    struct slice rest = text;
    struct slice token = {NULL, 0};
    if (shape.leading_token) {
        token = syntax_next_item(&rest);
        shape = syntax_shape_of(rest);
    }
    int oneof = syntax_add(p, "oneof", text);
    int last = -1;
    while (rest.len && !p->failed) {
        int index = syntax_alternative(p, syntax_next_alternative(&rest), &shape);
        if (index < 0) {
            p->failed = true;
            break;
        }
        if (last < 0) {
            syntax_node(p, oneof)->child = index;
        } else {
            syntax_node(p, last)->next = index;
        }
        last = index;
    }
    if (!p->failed) {
        syntax_node(p, oneof)->token = token;
        syntax_name_by_parts(p, oneof);
    }
    return oneof;
}

/* A choice, which may be followed by its own repetition: "a|b [a|b ...]". */
static int syntax_choice(struct syntax_parser *p, struct slice text)
{
    if (++p->depth > SYNTAX_MAX_DEPTH) {
        p->failed = true;
    }
    int index = -1;
    if (!p->failed) {
        /* P [P ...] is twice as long as P and 7 more. */
        size_t half = text.len >= 7 ? (text.len - 7) / 2 : 0;
        struct slice once = slice_of(text.ptr, half);
        bool repeated = half > 0 && text.len == 2 * half + 7 && syntax_ends_with(text, " ...]") &&
                        memcmp(text.ptr + half, " [", 2) == 0 &&
                        memcmp(text.ptr, text.ptr + half + 2, half) == 0;
        /* A lone token that is repeated is a value whose name is in capitals. */
        bool value = repeated && syntax_is_token(once) && syntax_is_word(once);
        index = value ? syntax_add_value(p, once) : syntax_choice_of(p, repeated ? once : text);
        if (repeated && index >= 0) {
            struct syntax_node *n = syntax_node(p, index);
            bool token_inside = n->token.len > 0;
            n->flags |= SYNTAX_MULTIPLE | (token_inside ? SYNTAX_MULTIPLE_TOKEN : 0);
        }
    }
    p->depth--;
    return index;
}

/* ---- Sequences ---- */

static void syntax_append(struct syntax_parser *p, struct syntax_chain *chain, int index)
{
    if (index < 0) {
        p->failed = true;
        return;
    }
    if (chain->first < 0) {
        chain->first = index;
    } else {
        syntax_node(p, chain->last)->next = index;
    }
    chain->last = index;
}

/* Marks the tail of the chain that `repeated` spells as repeated. */
static void syntax_repeat(struct syntax_parser *p, struct syntax_chain *chain,
                          struct slice repeated)
{
    int before = -1;
    for (int i = chain->first; i >= 0; before = i, i = syntax_node(p, i)->next) {
        struct syntax_node *n = syntax_node(p, i);
        struct slice last = syntax_node(p, chain->last)->text;
        struct slice tail = syntax_between(n->text.ptr, last.ptr + last.len);
        if (slice_equal(tail, repeated)) {
            int block = syntax_as_block(p, (struct syntax_chain){i, chain->last}, tail);
            struct syntax_node *b = syntax_node(p, block);
            b->flags |= SYNTAX_MULTIPLE | (b->token.len ? SYNTAX_MULTIPLE_TOKEN : 0);
            if (block != i) {
                *(before < 0 ? &chain->first : &syntax_node(p, before)->next) = block;
                chain->last = block;
            }
            return;
        }
    }
    p->failed = true;
}

/* The values that belong to a token: words, and repetitions that do not say the token again. Moves
 * `rest` behind. */
static struct slice syntax_token_values(struct slice token, struct slice *rest)
{
    struct slice values = slice_of(rest->ptr, 0);
    for (;;) {
        struct slice after = *rest;
        struct slice item = syntax_next_item(&after);
        bool value = syntax_is_word(item) && !syntax_is_token(item);
        if (syntax_is_group(item, '[') && values.len && syntax_ends_with(item, " ...]")) {
            struct slice inside = syntax_inside(item);
            value = !slice_equal(syntax_next_item(&inside), token);
        }
        if (!value) {
            return values;
        }
        values = syntax_between(values.ptr, item.ptr + item.len);
        *rest = after;
    }
}

/* True when the token is really a value in capitals: ID [ID ...]. */
static bool syntax_repeats_itself(struct slice word, struct slice rest)
{
    struct slice item = syntax_next_item(&rest);
    if (!syntax_is_group(item, '[') || !syntax_ends_with(item, " ...]")) {
        return false;
    }
    struct slice inside = syntax_inside(item);
    return inside.len == word.len + 4 && slice_equal(syntax_next_item(&inside), word);
}

static int syntax_word(struct syntax_parser *p, struct slice word, struct slice *rest)
{
    if (!syntax_is_token(word) || syntax_repeats_itself(word, *rest)) {
        return syntax_add_value(p, word);
    }
    struct slice values = syntax_token_values(word, rest);
    struct slice after = *rest;
    struct slice next = syntax_next_item(&after);
    int index;
    if (values.len) {
        index = syntax_as_block(p, syntax_sequence(p, values), values);
    } else if (syntax_is_group(next, '<')) {
        *rest = after;
        values = next;
        index = syntax_choice(p, syntax_inside(next));
    } else {
        return syntax_add_token(p, word);
    }
    if (index >= 0) {
        struct syntax_node *n = syntax_node(p, index);
        n->token = word;
        n->text = syntax_between(word.ptr, values.ptr + values.len);
    }
    return index;
}

static struct syntax_chain syntax_sequence(struct syntax_parser *p, struct slice text)
{
    struct syntax_chain chain = {-1, -1};
    struct slice rest = text;
    for (;;) {
        struct slice item = syntax_next_item(&rest);
        if (item.len == 0 || p->failed) {
            return chain;
        }
        if (syntax_is_group(item, '[') && syntax_ends_with(item, " ...]")) {
            struct slice inside = syntax_inside(item);
            struct slice repeated = syntax_trim(slice_of(inside.ptr, inside.len - 3));
            syntax_repeat(p, &chain, repeated);
            continue;
        }
        int index;
        if (syntax_is_group(item, '[') || syntax_is_group(item, '<')) {
            index = syntax_choice(p, syntax_inside(item));
            if (index >= 0) {
                syntax_node(p, index)->text = item;
                syntax_node(p, index)->flags |= item.ptr[0] == '[' ? SYNTAX_OPTIONAL : 0;
            }
        } else {
            index = syntax_word(p, item, &rest);
        }
        syntax_append(p, &chain, index);
    }
}

bool syntax_parse(const struct command *cmd, struct syntax_tree *tree)
{
    struct syntax_parser p = {.cmd = cmd, .tree = tree};
    tree->count = 0;
    tree->first = -1;
    if (cmd->row->args) {
        tree->first = syntax_sequence(&p, syntax_trim(slice_cstr(cmd->row->args))).first;
    }
    return !p.failed;
}
