/*
 * The named tests: what `-t` selects, the title that is printed, and the command that is sent.
 *
 * State: immutable tables.
 */
#ifndef TOOLS_BENCHMARK_CATALOGUE_H
#define TOOLS_BENCHMARK_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/benchmark/request.h"

/* One row of the catalogue. */
struct bench_test {
    const char *name;        /* as in -t; for a test that only prepares, the tests it is for */
    const char *group;       /* another name that selects it, or NULL */
    const char *title;       /* as printed */
    const char *inline_text; /* sent as it stands; then argv is unused */
    const char *argv[5];     /* the command; ends with NULL */
    const char *repeated[3]; /* arguments that follow `repeat` times; ends with NULL */
    int repeat;
};

/* What the arguments of a test are filled with. */
struct bench_fill {
    const char *data; /* payload for __data__ */
    size_t data_len;
    bool random; /* -r was given: __rand_int__ becomes slots */
    uint32_t pipeline;
};

/* The row after `test` in the order the tests run, or NULL at the end; starts with NULL. */
const struct bench_test *bench_catalogue_next(const struct bench_test *test);

/* The row whose name is `name` (without regard to case), or NULL. */
const struct bench_test *bench_catalogue_find(const char *name);

/*
 * Whether `selection`, a comma separated list of names or groups without regard to case, selects
 * `test`. NULL selects every test.
 */
bool bench_catalogue_selects(const char *selection, const struct bench_test *test);

/*
 * The first name in `selection` that no row answers to: a pointer into `selection`, with its length
 * in *len; NULL when all are known.
 */
const char *bench_catalogue_unknown(const char *selection, size_t *len);

/* Builds the request template of `test`. Returns 0, or -1 without memory. */
int bench_catalogue_build(const struct bench_test *test, const struct bench_fill *fill,
                          struct bench_request *request);

/*
 * Builds the template of a command given by the user, filling in __data__ (and __rand_int__ when
 * fill->random). Returns 0, or -1 without memory.
 */
int bench_catalogue_build_custom(int argc, const char *const *argv, const size_t *lens,
                                 const struct bench_fill *fill, struct bench_request *request);

#endif
