/* See shebang.h. */
#include "script/shebang.h"

#include "base/option.h"

bool shebang_parse(struct slice script, struct shebang *shebang)
{
    *shebang = (struct shebang){.code = script};
    if (script.len < 2 || memcmp(script.ptr, "#!", 2) != 0) {
        return true;
    }
    const char *end = memchr(script.ptr, '\n', script.len);
    if (!end) {
        return false;
    }
    size_t line = (size_t)(end - script.ptr);
    int count = option_split_line(slice_of(script.ptr + 2, line - 2), shebang->words,
                                  SHEBANG_WORDS_MAX, &shebang->scratch);
    if (count < 1) {
        return false;
    }
    shebang->engine = shebang->words[0];
    shebang->count = count;
    shebang->code = slice_of(end, script.len - line);
    return true;
}

void shebang_deinit(struct shebang *shebang)
{
    buf_deinit(&shebang->scratch);
}

bool shebang_word_is(struct slice word, const char *key, struct slice *value)
{
    size_t len = strlen(key);
    if (word.len < len || memcmp(word.ptr, key, len) != 0) {
        return false;
    }
    *value = slice_of(word.ptr + len, word.len - len);
    return true;
}
