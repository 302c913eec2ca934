/* The picture of LOLWUT. Pure but for its dice. */
#ifndef COMMANDS_LOLWUT_H
#define COMMANDS_LOLWUT_H

#include "base/buf.h"

/* Appends the picture; its last line is "Redis ver. <version>", which clients and tests look for.
 */
void lolwut_draw(struct buf *out);

#endif
