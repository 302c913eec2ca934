/* The help text. State: immutable. */
#ifndef TOOLS_BENCHMARK_USAGE_H
#define TOOLS_BENCHMARK_USAGE_H

#include <stdio.h>

/* Prints how the program is called to `out`. */
void bench_usage_print(FILE *out);

#endif
