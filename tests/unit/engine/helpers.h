/* What the engine's unit tests share. */
#ifndef TESTS_UNIT_ENGINE_HELPERS_H
#define TESTS_UNIT_ENGINE_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "engine/call.h"
#include "resp/reply.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* True when `run` ends a child process by abort(). */
bool helper_aborts(void (*run)(void));
/* Runs `run` with standard error going into `out`. */
void helper_capture_stderr(struct buf *out, void (*run)(void *context), void *context);
/* The bytes of everything replied so far, NUL-terminated in `out` (cleared first). */
const char *helper_reply_text(struct reply *r, struct buf *out);
/* Splits `text` at blanks into argv (at most `max`); the slices point into `text`. */
int helper_words(const char *text, struct slice *argv, int max);
/* Writes a file; reads it into `out` (cleared first, NUL-terminated). */
void helper_write_file(const char *path, const char *text);
const char *helper_read_file(const char *path, struct buf *out);
/* A new temporary directory (freed and emptied by helper_remove_directory). */
char *helper_make_directory(void);
void helper_remove_directory(char *path);

#endif
