/* Lines of the configuration for modules that are not there yet. See config.h. */
#include "engine/config_priv.h"

/* Each with a newline, in words of canonical form. */
static struct buf kept;

void config_forget_kept(void)
{
    buf_deinit(&kept);
}

void config_keep_line(const struct slice *words, int count)
{
    config_append_words(&kept, words, count);
    buf_append_char(&kept, '\n');
}

/* Whether a kept line is that name's; its words behind the name are appended to `words` then, in
 * the place of what is there. */
static bool line_is_of(struct slice line, struct slice name, struct buf *words)
{
    struct slice parts[OPTION_MAX_WORDS];
    struct buf scratch = {0};
    int count = option_split_line(line, parts, OPTION_MAX_WORDS, &scratch);
    bool same =
        count > 0 && parts[0].len == name.len && strncasecmp(parts[0].ptr, name.ptr, name.len) == 0;
    if (same) {
        buf_clear(words);
        config_append_words(words, parts + 1, count - 1);
    }
    buf_deinit(&scratch);
    return same;
}

bool config_claim_line(struct slice name, struct buf *words)
{
    struct buf rest = {0};
    struct slice line;
    bool found = false;
    for (size_t pos = 0; config_next_line(buf_slice(&kept), &pos, &line);) {
        if (line_is_of(line, name, words)) {
            found = true;
        } else {
            buf_append_slice(&rest, line);
            buf_append_char(&rest, '\n');
        }
    }
    buf_deinit(&kept);
    kept = rest;
    return found;
}

bool config_drop_kept(struct buf *first_name)
{
    struct slice line = {NULL, 0};
    size_t pos = 0, len = 0;
    bool some = config_next_line(buf_slice(&kept), &pos, &line);
    while (some && len < line.len && line.ptr[len] != ' ') {
        len++;
    }
    buf_append(first_name, line.ptr, len);
    buf_deinit(&kept);
    return some;
}
