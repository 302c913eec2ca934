/* Foreign packed collections: the elements of ziplists and zipmaps (Redis before 7.0 and 2.6),
 * listpacks and intsets, shown one by one after each has been checked. Pure functions.
 *
 *   ziplist  u32 bytes | u32 offset of the last element | u16 count (65535: unknown) | elements |
 *            255; element: length of the one before (1 byte, or 254 and u32) | encoding | data
 *   zipmap   u8 count (254: unknown) | (length | name | length | u8 unused | value | unused
 *            bytes) ... | 255; a length is a byte below 254, or 254 and u32
 *
 * (Formats: Redis's documentation of its files, public.) */
#ifndef PERSIST_PACKED_H
#define PERSIST_PACKED_H

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>

/* Gets an element, valid during the call; false ends the walk. */
typedef bool (*packed_visit_fn)(struct slice element, void *context);

/* Show all elements (of a zipmap name, value, name, value ...). False when the bytes are not what
 * they should be, or `visit` said so. */
bool packed_each_ziplist(struct slice bytes, packed_visit_fn visit, void *context) MUST_CHECK;
bool packed_each_zipmap(struct slice bytes, packed_visit_fn visit, void *context) MUST_CHECK;
bool packed_each_listpack(struct slice bytes, packed_visit_fn visit, void *context) MUST_CHECK;
bool packed_each_intset(struct slice bytes, packed_visit_fn visit, void *context) MUST_CHECK;

#endif
