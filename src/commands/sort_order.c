/* SORT's order: weights, comparison, collation, and the sorting itself. */
#include "commands/commands.h"
#include "commands/sort_priv.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

/* Numbers up to so many bytes are parsed without a block of memory. */
#define NUMBER_ON_STACK 256
/* As few items, or so few that not all are wanted, are not worth being parted first. */
#define SELECT_AT_LEAST 64

/* ---- Collation: the option locale-collate ---- */

/* World state. `locale` is NULL where text collates bytewise: in the locale C and its kin, whose
 * order that is. */
static struct {
    char *name;
    locale_t locale;
} collation;

static bool is_bytewise(locale_t locale)
{
    const char *name = nl_langinfo_l(_NL_LOCALE_NAME(LC_COLLATE), locale);
    return strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0 || strncmp(name, "C.", 2) == 0;
}

/* False when there is no such locale on this machine. */
static bool open_locale(const char *name, locale_t *locale)
{
    *locale = newlocale(LC_COLLATE_MASK, name, (locale_t)0);
    if (!*locale) {
        return false;
    }
    if (is_bytewise(*locale)) {
        freelocale(*locale);
        *locale = (locale_t)0;
    }
    return true;
}

static bool check_locale(const struct option *option UNUSED, struct slice text, const char **error)
{
    char name[128];
    locale_t locale;
    if (text.len > 0 && text.len < sizeof(name) && !memchr(text.ptr, '\0', text.len)) {
        memcpy(name, text.ptr, text.len);
        name[text.len] = '\0';
        if (open_locale(name, &locale)) {
            if (locale) {
                freelocale(locale);
            }
            return true;
        }
    }
    *error = "Invalid locale name";
    return text.len == 0;
}

static void drop_locale(void)
{
    if (collation.locale) {
        freelocale(collation.locale);
        collation.locale = (locale_t)0;
    }
}

static bool apply_locale(const struct option *option UNUSED, const char **error)
{
    locale_t locale;
    if (!open_locale(collation.name ? collation.name : "", &locale)) {
        *error = "Invalid locale name";
        return false;
    }
    drop_locale();
    collation.locale = locale;
    return true;
}

void sort_setup(void)
{
    const char *error;
    if (!apply_locale(NULL, &error)) {
        log_warning("The locale of the environment does not exist here: SORT ALPHA compares bytes");
    }
}

void sort_teardown(void)
{
    drop_locale();
    mem_free(collation.name);
    collation.name = NULL;
}

const struct option sort_options[] = {
    {.name = "locale-collate",
     .type = OPTION_STRING,
     .target = &collation.name,
     .initial = "",
     .check = check_locale,
     .apply = apply_locale},
    {.name = NULL},
};

/* ---- Weights ---- */

/* As strtod takes it, blanks before it included; nothing is 0. */
static bool parse_text(const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return *end == '\0' && errno != ERANGE && !isnan(*value);
}

static bool parse_score(struct slice text, double *value)
{
    int64_t integer;
    if (num_parse_i64(text, &integer)) {
        *value = (double)integer;
        return true;
    }
    char on_stack[NUMBER_ON_STACK];
    char *copy = text.len < sizeof(on_stack) ? on_stack : mem_alloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    bool is_number = parse_text(copy, value);
    if (copy != on_stack) {
        mem_free(copy);
    }
    return is_number;
}

/* With a NUL behind it, as strcoll wants it. */
static struct slice terminated_copy(struct slice text, struct arena *arena)
{
    char *copy = arena_alloc(arena, text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return slice_of(copy, text.len);
}

static bool collates(const struct sort_order *order)
{
    return order->collate && collation.locale;
}

/* The weight of an item as text. */
static void weigh_text(struct call *c, const struct sort_order *order, struct sort_item *item,
                       struct buf *name, struct arena *arena) REQUIRES_SHARED(keyspace_lock)
{
    struct sort_found found = {.bytes = item->bytes};
    item->weight = slice_of(NULL, 0);
    if (order->by && !sort_pattern_read(c, order->by, item->bytes, name, &found)) {
        return;
    }
    bool lasts = found.bytes.ptr != found.scratch && !collates(order) && found.bytes.len > 0;
    item->weight = lasts ? found.bytes : terminated_copy(found.bytes, arena);
}

/* The weight of an item as a number, 0 where its key is missing; false when it is none. */
static bool weigh_number(struct call *c, const struct sort_order *order, struct sort_item *item,
                         struct buf *name) REQUIRES_SHARED(keyspace_lock)
{
    struct sort_found found = {.bytes = item->bytes};
    item->score = 0;
    if (order->by && !sort_pattern_read(c, order->by, item->bytes, name, &found)) {
        return true;
    }
    return parse_score(found.bytes, &item->score);
}

bool sort_weigh(struct call *c, const struct sort_order *order, struct sort_item *items,
                uint64_t count, struct arena *arena)
{
    struct buf name = {0};
    bool all_numbers = true;
    for (uint64_t i = 0; i < count; i++) {
        if (order->alpha) {
            weigh_text(c, order, &items[i], &name, arena);
        } else if (!weigh_number(c, order, &items[i], &name)) {
            all_numbers = false;
        }
    }
    buf_deinit(&name);
    return all_numbers;
}

/* ---- Comparing ---- */

static int compare_text(const struct sort_order *order, struct slice a, struct slice b)
{
    if (!a.ptr || !b.ptr) {
        return (a.ptr != NULL) - (b.ptr != NULL);
    }
    return collates(order) ? strcoll_l(a.ptr, b.ptr, collation.locale) : slice_compare(a, b);
}

static int compare_weights(const struct sort_order *order, const struct sort_item *x,
                           const struct sort_item *y)
{
    if (order->alpha) {
        return compare_text(order, x->weight, y->weight);
    }
    int by_score = (x->score > y->score) - (x->score < y->score);
    return by_score ? by_score : slice_compare(x->bytes, y->bytes);
}

/* A total order, whatever the locale says: no two items are equal. */
static int compare_items(const void *a, const void *b, void *context)
{
    const struct sort_order *order = context;
    const struct sort_item *x = a, *y = b;
    int result = compare_weights(order, x, y);
    if (result) {
        return order->descending ? -result : result;
    }
    if (order->unordered) {
        result = slice_compare(x->bytes, y->bytes);
    }
    return result ? result : (x->place > y->place) - (x->place < y->place);
}

/* ---- Sorting ---- */

static void swap_items(struct sort_item *a, struct sort_item *b)
{
    struct sort_item held = *a;
    *a = *b;
    *b = held;
}

/* Parts the items around one of them, chosen by chance so that nobody can choose badly for us:
 * smaller ones before it, greater ones behind. Returns where it stands. */
static uint64_t part(const struct sort_order *order, struct sort_item *items, uint64_t count)
{
    uint64_t smaller = 0;
    struct sort_item *pivot = &items[count - 1];
    swap_items(&items[rand_below(count)], pivot);
    for (uint64_t i = 0; i < count - 1; i++) {
        if (compare_items(&items[i], pivot, (void *)order) < 0) {
            swap_items(&items[i], &items[smaller++]);
        }
    }
    swap_items(&items[smaller], pivot);
    return smaller;
}

/* Brings the item that belongs at `place` there, smaller ones before it and greater ones behind:
 * linear on average. */
static void select_item(const struct sort_order *order, struct sort_item *items, uint64_t count,
                        uint64_t place)
{
    assert(place < count);
    while (count > 1) {
        uint64_t at = part(order, items, count);
        if (at == place) {
            return;
        }
        if (at < place) {
            items += at + 1;
            count -= at + 1;
            place -= at + 1;
        } else {
            count = at;
        }
    }
}

void sort_items(const struct sort_order *order, struct sort_item *items, uint64_t count,
                uint64_t start, uint64_t wanted)
{
    assert(start <= count && wanted <= count - start);
    if (wanted == 0) {
        return;
    }
    /* Where half of all are wanted, sorting them all costs no more. */
    if (count > SELECT_AT_LEAST && wanted < count / 2) {
        if (start > 0) {
            select_item(order, items, count, start);
        }
        if (start + wanted < count) {
            select_item(order, items + start, count - start, wanted);
        }
        items += start;
        count = wanted;
    }
    qsort_r(items, count, sizeof(*items), compare_items, (void *)order);
}
