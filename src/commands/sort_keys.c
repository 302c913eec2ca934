/* SORT's patterns: keys whose names are made of an element. They are in no key specification, so
 * they are hashed here, under the lock. */
#include "commands/sort_priv.h"

/* The first "->" behind `from` that has a field behind it; NULL when there is none. Only the first
 * "->" counts. */
static const char *find_arrow(const char *from, const char *end)
{
    const char *arrow = memmem(from, (size_t)(end - from), "->", 2);
    return arrow && arrow + 2 < end ? arrow : NULL;
}

struct sort_pattern sort_pattern_parse(struct slice text)
{
    struct sort_pattern p = {.kind = SORT_PATTERN_NOTHING};
    if (slice_equal(text, SLICE("#"))) {
        p.kind = SORT_PATTERN_ELEMENT;
        return p;
    }
    const char *end = text.ptr + text.len;
    const char *star = memchr(text.ptr, '*', text.len);
    if (!star) {
        return p;
    }
    const char *arrow = find_arrow(star + 1, end);
    const char *key_end = arrow ? arrow : end;
    p.kind = arrow ? SORT_PATTERN_FIELD : SORT_PATTERN_STRING;
    p.prefix = slice_of(text.ptr, (size_t)(star - text.ptr));
    p.suffix = slice_of(star + 1, (size_t)(key_end - star - 1));
    if (arrow) {
        p.field = slice_of(arrow + 2, (size_t)(end - arrow - 2));
    }
    return p;
}

static bool read_string(const struct entry *e, struct sort_found *found)
{
    if (entry_type(e) != VALUE_STRING) {
        return false;
    }
    found->bytes = string_view(e, found->scratch);
    found->blob = string_blob(e);
    return true;
}

static bool read_field(const struct entry *e, struct slice field, struct sort_found *found)
{
    struct hash_text text;
    if (entry_type(e) != VALUE_HASH || !hash_get(e, field, &text)) {
        return false;
    }
    found->bytes = text.bytes;
    found->blob = text.blob;
    if (text.bytes.ptr == text.scratch) {
        memcpy(found->scratch, text.scratch, text.bytes.len);
        found->bytes.ptr = found->scratch;
    }
    return true;
}

bool sort_pattern_read(struct call *c, const struct sort_pattern *p, struct slice element,
                       struct buf *name, struct sort_found *found)
{
    if (p->kind == SORT_PATTERN_NOTHING) {
        return false;
    }
    if (p->kind == SORT_PATTERN_ELEMENT) {
        *found = (struct sort_found){.bytes = element};
        return true;
    }
    buf_clear(name);
    buf_append_slice(name, p->prefix);
    buf_append_slice(name, element);
    buf_append_slice(name, p->suffix);
    struct key key = key_of(buf_slice(name));
    struct entry *e = db_read(c->db, &key, c->now_ms, call_look_flags(c));
    if (!e) {
        return false;
    }
    return p->kind == SORT_PATTERN_STRING ? read_string(e, found) : read_field(e, p->field, found);
}
