/* What the server says of itself: the version that clients are told, where it stands. State: world;
 * the version holds from the start. */
#ifndef ENGINE_IDENTITY_H
#define ENGINE_IDENTITY_H

#include "base/option.h"

/* The version of Redis that INFO and HELLO tell: version-override, or the one whose behaviour is
 * kept. */
const char *identity_version(void);
/* availability-zone; "" when it is not known. */
const char *identity_zone(void);
void identity_teardown(void);

extern const struct option identity_options[];

#endif
