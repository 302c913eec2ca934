/* --eval: see modes.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/modes.h"

/* A longer script would not be accepted as one argument by default (proto-max-bulk-len). */
#define EVAL_SCRIPT_BYTES_MAX (512L * 1024 * 1024)

static bool read_script(const char *path, struct text *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "Can't open file '%s': %s\n", path, strerror(errno));
        return false;
    }
    size_t n;
    do {
        n = fread(text_reserve(out, 65536), 1, 65536, file);
        text_advance(out, n);
    } while (n > 0 && out->len <= EVAL_SCRIPT_BYTES_MAX);
    bool good = ferror(file) == 0 && out->len <= EVAL_SCRIPT_BYTES_MAX;
    if (!good) {
        fprintf(stderr, "Can't read file '%s': %s\n", path,
                ferror(file) != 0 ? strerror(errno) : "too long");
    }
    fclose(file);
    return good;
}

bool mode_eval_prepare(const struct options *o, struct words *command)
{
    struct text script;
    text_init(&script);
    if (!read_script(o->eval_path, &script)) {
        text_deinit(&script);
        return false;
    }
    const struct words *given = &o->command;
    size_t keys = 0;
    while (keys < given->count && strcmp(given->list[keys].data, ",") != 0) {
        keys++;
    }
    char number[24];
    snprintf(number, sizeof(number), "%zu", keys);
    words_add(command, "EVAL", 4);
    words_add(command, script.data, script.len);
    words_add(command, number, strlen(number));
    for (size_t i = 0; i < given->count; i++) {
        if (i != keys) { /* the comma */
            words_add(command, given->list[i].data, given->list[i].len);
        }
    }
    text_deinit(&script);
    return true;
}
