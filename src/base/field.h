/* Lines "name:value\r\n", as INFO is made of, and values within such lines, without printf: INFO
 * has two hundred of them. State: none; the buffer is the caller's. */
#ifndef BASE_FIELD_H
#define BASE_FIELD_H

#include "base/buf.h"

#include <stdint.h>

/* Append a line. */
void field_text(struct buf *out, const char *name, const char *text);
void field_u64(struct buf *out, const char *name, uint64_t value);
void field_i64(struct buf *out, const char *name, int64_t value);
/* The value with so many decimals (at most 9), as "%.*f" would have it but that halves are rounded
 * away from 0. */
void field_fixed(struct buf *out, const char *name, double value, unsigned decimals);

/* Append a text and then a value, and no end of a line. */
void field_part_u64(struct buf *out, const char *before, uint64_t value);
void field_part_i64(struct buf *out, const char *before, int64_t value);
void field_part_fixed(struct buf *out, const char *before, double value, unsigned decimals);
/* Append two texts. */
void field_part_text(struct buf *out, const char *before, const char *text);

#endif
