/* The SHA1s of texts that were run lately: EVAL sends the script's text each time, and to compare
 * it with the text that had the same place is much less work than to digest it.
 *
 * State: keyspace; exclusive mode. Bounded: RECENT_TEXTS texts of RECENT_TEXT_MAX bytes. */
#ifndef SCRIPT_RECENT_H
#define SCRIPT_RECENT_H

#include "base/slice.h"

#include <stdbool.h>

#define RECENT_TEXTS 128
/* Longer ones are digested each time. */
#define RECENT_TEXT_MAX_BYTES 4096
#define RECENT_SHA_CHARS 40

/* The SHA1 of a text in hexadecimal digits, from memory where it was asked for lately. */
void recent_sha1(struct slice text, char sha[RECENT_SHA_CHARS]);
/* Frees all that is kept. */
void recent_forget(void);

#endif
