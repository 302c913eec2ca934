/* Replies as text, in each of the output styles. The bytes are those that redis-cli prints; where
 * they differ, README.md says so.
 *
 * State: none. Nothing here prints: the caller writes the text. */
#ifndef TOOLS_CLI_FORMAT_H
#define TOOLS_CLI_FORMAT_H

#include "tools/cli/options.h"
#include "tools/common/reply.h"
#include "tools/common/text.h"

/* Appends a whole reply with its closing line feed (or, raw, with the command delimiter).
 * `style` is what the caller found to hold for this reply, which may differ from o->output. */
void format_reply(struct text *out, const struct reply *r, const struct options *o,
                  enum output_style style);

/* Appends the text of a reply that is meant to be read as it is (INFO, CLIENT LIST ...), with a
 * line feed unless it ends in one or is empty. */
void format_verbatim(struct text *out, const struct reply *r, const struct options *o);

/* Appends a push (RESP3) that arrived beside the replies. */
void format_push(struct text *out, const struct reply *r, const struct options *o);

#endif
