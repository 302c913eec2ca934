/* What the server says of itself: the version that clients are told, where it stands. State: world;
 * the version holds from the start, the role is atomic. */
#ifndef ENGINE_IDENTITY_H
#define ENGINE_IDENTITY_H

#include "base/option.h"

#include <stdbool.h>

/* The version of Redis that INFO and HELLO tell: version-override, or the one whose behaviour is
 * kept. */
const char *identity_version(void);
/* availability-zone; "" when it is not known. */
const char *identity_zone(void);
/* Whether it follows a primary, as HELLO tells clients. Any thread. */
bool identity_is_replica(void);
void identity_set_replica(bool is_replica);
void identity_teardown(void);

extern const struct option identity_options[];

#endif
