/* FUNCTION DUMP and RESTORE: all libraries as one text, in the form of RDB files. State: none.
 *
 *   bytes          what
 *   245            a library follows
 *   length, bytes  its code, as an RDB string: plain, or LZF-compressed
 *   ...            more of them
 *   2              version of the form, little-endian
 *   8              CRC-64 of all before, little-endian */
#ifndef SCRIPT_FUNCTIONS_PAYLOAD_H
#define SCRIPT_FUNCTIONS_PAYLOAD_H

#include "base/buf.h"

/* Appends a library; and, behind the last one, the end. */
void functions_payload_add(struct buf *out, struct slice code);
void functions_payload_end(struct buf *out);

/* True when version and checksum are right; *body is what is before them. */
bool functions_payload_open(struct slice payload, struct slice *body) MUST_CHECK;
/* Takes the next library off the body: its code is appended. False when the body is not what it
 * should be. */
bool functions_payload_next(struct slice *body, struct buf *code) MUST_CHECK;

#endif
