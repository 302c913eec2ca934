/* Numbers out of text that a person typed. State: none. */
#ifndef TOOLS_CLI_NUMBER_H
#define TOOLS_CLI_NUMBER_H

#include <stdbool.h>

/* Reads all of `text` as a decimal number from `min` to `max`. False, with *out untouched, when it
 * is anything else. */
bool number_parse(const char *text, long long min, long long max, long long *out);

/* Reads all of `text` as seconds, with decimals, from 0 to 1,000,000, and converts them to
 * microseconds. False, with *out untouched, when it is anything else. */
bool number_parse_seconds(const char *text, long long *out_us);

/* Room for number_human_bytes(). */
#define NUMBER_HUMAN_BYTES 32

/* "1023B", "1.50K" and so on, with powers of 1024. */
void number_human_bytes(char out[NUMBER_HUMAN_BYTES], long long bytes);

#endif
