/* Numbers out of text that a person typed: see number.h. */
#include "tools/cli/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool number_parse(const char *text, long long min, long long max, long long *out)
{
    size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
    if (text[sign] == '\0' || strspn(text + sign, "0123456789") != strlen(text + sign)) {
        return false;
    }
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno != 0 || value < min || value > max) {
        return false;
    }
    *out = value;
    return true;
}

bool number_parse_seconds(const char *text, long long *out_us)
{
    if (text[0] == '\0' || strspn(text, "0123456789.") != strlen(text)) {
        return false;
    }
    char *end;
    double seconds = strtod(text, &end);
    if (*end != '\0' || !(seconds >= 0 && seconds <= 1000000)) {
        return false;
    }
    *out_us = (long long)(seconds * 1000000.0);
    return true;
}

void number_human_bytes(char out[NUMBER_HUMAN_BYTES], long long bytes)
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(out, NUMBER_HUMAN_BYTES, "%lldB", bytes);
        return;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1024 && unit < sizeof(units) - 2) {
        value /= 1024;
        unit++;
    }
    snprintf(out, NUMBER_HUMAN_BYTES, "%.2f%c", value, units[unit]);
}
