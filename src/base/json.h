/* Text for JSON (RFC 8259). Pure functions. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"
#include "base/slice.h"

/* Appends `text` as a JSON string in double quotes: quotes, backslashes and control characters are
 * escaped, valid UTF-8 stands as it is, and a byte that belongs to none is written as \u00xx, so
 * that the result is always valid. */
void json_append_string(struct buf *out, struct slice text);

#endif
