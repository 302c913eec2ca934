/* INFO: writers grouped by section, and the words that choose sections. */
#include "engine/info.h"

#include "base/field.h"
#include "base/mem.h"

#include <assert.h>

#define SECTION_MAX 64

struct section {
    const char *name, *title;
    bool in_default;
    void (**writers)(struct buf *out);
    unsigned writer_count;
};

/* Immutable after boot. */
static struct section sections[SECTION_MAX];
static unsigned section_count;
static const struct info_guests *guests;

void info_register(const struct info_section *added)
{
    assert(added->name != NULL && added->title != NULL && added->write != NULL);
    struct section *s = NULL;
    for (unsigned i = 0; i < section_count; i++) {
        if (strcmp(sections[i].name, added->name) == 0) {
            s = &sections[i];
        }
    }
    if (s == NULL) {
        assert(section_count < SECTION_MAX);
        s = &sections[section_count++];
        *s = (struct section){.name = added->name, .title = added->title};
    }
    s->in_default |= added->in_default;
    s->writers = mem_realloc(s->writers, (s->writer_count + 1) * sizeof(*s->writers));
    s->writers[s->writer_count++] = added->write;
}

static bool word_chooses(struct slice word, const struct section *s)
{
    if (slice_equal_nocase(word, "all") || slice_equal_nocase(word, "everything")) {
        return true;
    }
    return slice_equal_nocase(word, s->name) ||
           (s->in_default && slice_equal_nocase(word, "default"));
}

static bool section_chosen(const struct section *s, const struct slice *words, int count)
{
    if (count == 0) {
        return s->in_default;
    }
    for (int i = 0; i < count; i++) {
        if (word_chooses(words[i], s)) {
            return true;
        }
    }
    return false;
}

/* Whether a word may name a section of guests. */
static bool may_be_guests(struct slice word)
{
    if (slice_equal_nocase(word, "modules") || slice_equal_nocase(word, "everything")) {
        return true;
    }
    bool known = slice_equal_nocase(word, "all") || slice_equal_nocase(word, "default");
    for (unsigned i = 0; i < section_count && !known; i++) {
        known = slice_equal_nocase(word, sections[i].name);
    }
    return !known;
}

bool info_asks_guests(const struct slice *words, int count)
{
    bool asks = false;
    if (guests && count > 0 && guests->exist()) {
        for (int i = 0; i < count && !asks; i++) {
            asks = may_be_guests(words[i]);
        }
    }
    return asks;
}

void info_write(struct buf *out, const struct slice *words, int count)
{
    bool first = true;
    for (unsigned i = 0; i < section_count; i++) {
        const struct section *s = &sections[i];
        if (!section_chosen(s, words, count)) {
            continue;
        }
        field_part_text(out, first ? "# " : "\r\n# ", s->title);
        buf_append_cstr(out, "\r\n");
        first = false;
        for (unsigned k = 0; k < s->writer_count; k++) {
            s->writers[k](out);
        }
    }
    if (info_asks_guests(words, count)) {
        guests->write(out, words, count, first);
    }
}

void info_set_guests(const struct info_guests *set)
{
    guests = set;
}

bool info_has_report(void)
{
    return guests && guests->exist();
}

void info_report(void (*write)(const char *bytes, size_t len))
{
    guests->report(write);
}

void info_teardown(void)
{
    for (unsigned i = 0; i < section_count; i++) {
        mem_free(sections[i].writers);
    }
    section_count = 0;
    guests = NULL;
}
