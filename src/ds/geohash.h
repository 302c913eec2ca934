/* Geohashes as Redis keeps them in the scores of sorted sets: longitude and latitude in fixed point
 * of up to 26 bits each, interleaved, latitude in the even bits. 52 bits are exact in a double.
 * Latitudes end where the Web Mercator projection (EPSG:900913) ends. The constants are Redis's,
 * so that scores, distances and the order of results agree with its. Pure functions. */
#ifndef DS_GEOHASH_H
#define DS_GEOHASH_H

#include <stdbool.h>
#include <stdint.h>

#define GEOHASH_LONGITUDE_MAX 180.0
#define GEOHASH_LATITUDE_MAX 85.05112878
/* Bits a coordinate. */
#define GEOHASH_MAX_STEP 26
/* Length of the text that GEOHASH replies. */
#define GEOHASH_TEXT_BYTES 11

struct geohash_point {
    double longitude, latitude; /* degrees */
};

/* A cell: a rectangle of degrees, 2^step of them in each direction. */
struct geohash_cell {
    uint64_t bits;
    unsigned step; /* 1 .. GEOHASH_MAX_STEP */
};

struct geohash_area {
    struct geohash_point min, max;
};

/* True when the point is one that can be kept. */
bool geohash_is_valid_point(struct geohash_point point);
/* The cell of a valid point. */
struct geohash_cell geohash_encode(struct geohash_point point, unsigned step);
/* The area of a cell, and its centre. */
struct geohash_area geohash_area_of(struct geohash_cell cell);
struct geohash_point geohash_centre_of(struct geohash_cell cell);
/* The cell that many cells to the east and north; the world wraps in both directions. */
struct geohash_cell geohash_neighbour(struct geohash_cell cell, int east, int north);
/* The score of the cell's first point, and what the scores of all its points are below. */
uint64_t geohash_score_min(struct geohash_cell cell);
uint64_t geohash_score_end(struct geohash_cell cell);
/* The point that a score stands for. */
struct geohash_point geohash_point_of_score(double score);
/* The standard geohash of the point, 11 characters; the last is always 0, as 52 bits give no more.
 */
void geohash_text(struct geohash_point point, char text[GEOHASH_TEXT_BYTES]);

/* Distance in metres along the great circle (haversine, a sphere of 6372797.560856 m). */
double geohash_distance_m(struct geohash_point a, struct geohash_point b);

/* What is searched: a circle, or a rectangle with sides along the coordinates. */
struct geohash_shape {
    struct geohash_point centre;
    bool is_box;
    double radius_m;          /* of a circle */
    double width_m, height_m; /* of a rectangle */
};

/* True when the point lies in the shape; *distance_m is its distance from the centre then. */
bool geohash_shape_contains(const struct geohash_shape *shape, struct geohash_point point,
                            double *distance_m);

/* The cells to look through: up to nine, in the order in which results are found. */
#define GEOHASH_COVER_MAX 9
/* Finds cells that cover the shape (nearly always: as Redis does); returns how many. None is named
 * twice in a row. */
int geohash_cover(const struct geohash_shape *shape, struct geohash_cell cells[GEOHASH_COVER_MAX]);

#endif
