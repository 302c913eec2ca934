/* States that are told as digests (DESIGN.md, "Digests"): for whoever holds the same it is the
 * state, though without its bytes; for another one a state that he could not take. */
#include "active/merge_priv.h"

#include "base/mem.h"
#include "base/num.h"

#include <string.h>

#define DIGEST_BYTES_MAX 64

bool merge_put_digest(const struct merge *m, int db, struct slice key, struct buf *words)
{
    struct buf digest = {0};
    struct window_view view;
    bool good = m->executor->digest && m->executor->digest(m->context, db, key, &digest);
    if (good) {
        char number[NUM_I64_MAX_CHARS];
        window_view(m->window, db, key, &view);
        unit_put_word(words, key);
        unit_put_word(words, buf_slice(&digest));
        unit_put_word(words, slice_of(number, num_format_u64(number, merge_fold_void_upto(&view))));
        window_view_deinit(&view);
    }
    buf_deinit(&digest);
    return good;
}

void merge_digests(const struct merge *m, int count, struct slice words, struct buf *out)
{
    struct buf positions = {0};
    struct version_vector *cover = version_vector_create(m->origins);
    version_vector_encode(m->origins, cover, &positions);
    buf_printf(out, "*%d\r\n", DIGESTS_FIRST_KEY + DIGESTS_KEY_WORDS * count);
    unit_put_word(out, SLICE(DIGESTS_COMMAND));
    unit_put_word(out, buf_slice(&positions));
    buf_append_slice(out, words);
    mem_free(cover);
    buf_deinit(&positions);
}

bool merge_digest_is_sound(const struct slice *argv, const struct effect *effect)
{
    uint64_t whole;
    struct slice digest = argv[effect->key + 1];
    return digest.len > 0 && digest.len <= DIGEST_BYTES_MAX &&
           num_parse_u64(argv[effect->key + 2], &whole);
}

/* Puts it into the view, where it belongs. Returns its place. */
static int insert(const struct merge *m, struct window_view *view, const struct window_write *state)
{
    uint32_t at = view->count;
    if (view->count == view->capacity) {
        view->capacity = view->count + 1;
        view->writes = mem_realloc(view->writes, view->capacity * sizeof(*view->writes));
    }
    while (at > 0 && origins_compare(m->origins, state->dot, view->writes[at - 1].dot) < 0) {
        at--;
    }
    memmove(view->writes + at + 1, view->writes + at, (view->count - at) * sizeof(*view->writes));
    view->writes[at] = *state;
    view->count++;
    return (int)at;
}

static bool holds(const struct merge *m, int db, struct slice key, struct slice digest)
{
    struct buf ours = {0};
    bool same = m->executor->digest && m->executor->digest(m->context, db, key, &ours) &&
                slice_equal(buf_slice(&ours), digest);
    buf_deinit(&ours);
    return same;
}

enum merge_digest_fit merge_digest_fits(const struct merge *m, int db,
                                        const struct window_write *state)
{
    struct merge_fold f;
    struct slice key = state->argv[state->effect.key];
    enum merge_digest_fit fit = MERGE_DIGEST_BELOW;
    window_view(m->window, db, key, &f.view);
    int x = insert(m, &f.view, state);
    merge_fold_find(m, &f, -1);
    if (f.base == x) {
        bool alone = true;
        for (int i = 0; i < (int)f.view.count && alone; i++) {
            alone = !merge_fold_is_live(m, &f, i);
        }
        fit = alone && holds(m, db, key, state->argv[state->effect.key + 1]) ? MERGE_DIGEST_SAME
                                                                             : MERGE_DIGEST_OTHER;
    }
    if (!merge_fold_is_sure(m, &f, x, db, key)) {
        fit = MERGE_DIGEST_OTHER;
    }
    f.view.writes[x].argv = NULL; /* the caller's */
    window_view_deinit(&f.view);
    return fit;
}
