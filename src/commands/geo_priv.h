/* What the handlers of the geo family share. State: none of its own. */
#ifndef COMMANDS_GEO_PRIV_H
#define COMMANDS_GEO_PRIV_H

#include "ds/geohash.h"
#include "engine/call.h"

/* Arguments `arg` and `arg + 1` as a point; false with an error replied. */
bool geo_parse_point(struct call *c, int arg, struct geohash_point *point) MUST_CHECK;
/* Argument `arg` as a unit: its length in metres; false with an error replied. */
bool geo_parse_unit(struct call *c, int arg, double *metres) MUST_CHECK;
/* Replies a point as an array of two numbers. */
void geo_reply_point(struct call *c, struct geohash_point point);
/* Replies a distance with four decimals. */
void geo_reply_distance(struct call *c, double distance);

#endif
