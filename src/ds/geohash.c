/* See geohash.h. */
#include "ds/geohash.h"

#include <assert.h>
#include <math.h>

#define EARTH_RADIUS_M 6372797.560856
/* Half the circumference of the projected world, where doubling a radius ends. */
#define MERCATOR_MAX_M 20037726.37
#define RADIANS_PER_DEGREE (M_PI / 180.0)
/* Standard geohashes have latitudes from pole to pole. */
#define POLE_LATITUDE 90.0

static double to_radians(double degrees)
{
    return degrees * RADIANS_PER_DEGREE;
}

static double to_degrees(double radians)
{
    return radians / RADIANS_PER_DEGREE;
}

/* ---- Bits ---- */

/* Puts zeros between the bits of the low half. */
static uint64_t spread(uint64_t x)
{
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
    x = (x | x << 2) & 0x3333333333333333;
    return (x | x << 1) & 0x5555555555555555;
}

/* The even bits, together. */
static uint64_t gather(uint64_t x)
{
    x &= 0x5555555555555555;
    x = (x | x >> 1) & 0x3333333333333333;
    x = (x | x >> 2) & 0x0f0f0f0f0f0f0f0f;
    x = (x | x >> 4) & 0x00ff00ff00ff00ff;
    x = (x | x >> 8) & 0x0000ffff0000ffff;
    return (x | x >> 16) & 0x00000000ffffffff;
}

bool geohash_is_valid_point(struct geohash_point p)
{
    return p.longitude >= -GEOHASH_LONGITUDE_MAX && p.longitude <= GEOHASH_LONGITUDE_MAX &&
           p.latitude >= -GEOHASH_LATITUDE_MAX && p.latitude <= GEOHASH_LATITUDE_MAX;
}

/* Which of 2^step equal parts of -max..max the coordinate is in. The upper edge itself gives the
 * part behind the last, a bit too many, and Redis keeps it: in scores, and in the cells that are
 * searched.
 */
static uint64_t part_of(double coordinate, double max, unsigned step)
{
    double offset = (coordinate + max) / (max + max);
    return (uint64_t)(offset * (double)((uint64_t)1 << step));
}

static struct geohash_cell encode_within(struct geohash_point p, double latitude_max, unsigned step)
{
    uint64_t row = part_of(p.latitude, latitude_max, step);
    uint64_t column = part_of(p.longitude, GEOHASH_LONGITUDE_MAX, step);
    return (struct geohash_cell){spread(row) | spread(column) << 1, step};
}

struct geohash_cell geohash_encode(struct geohash_point point, unsigned step)
{
    assert(step >= 1 && step <= GEOHASH_MAX_STEP && geohash_is_valid_point(point));
    return encode_within(point, GEOHASH_LATITUDE_MAX, step);
}

static double edge_of(uint64_t part, double max, unsigned step)
{
    return -max + ((double)part * 1.0 / (double)((uint64_t)1 << step)) * (max + max);
}

struct geohash_area geohash_area_of(struct geohash_cell cell)
{
    uint64_t row = gather(cell.bits), column = gather(cell.bits >> 1);
    return (struct geohash_area){
        {edge_of(column, GEOHASH_LONGITUDE_MAX, cell.step),
         edge_of(row, GEOHASH_LATITUDE_MAX, cell.step)},
        {edge_of(column + 1, GEOHASH_LONGITUDE_MAX, cell.step),
         edge_of(row + 1, GEOHASH_LATITUDE_MAX, cell.step)},
    };
}

static double within(double coordinate, double max)
{
    return coordinate > max ? max : coordinate < -max ? -max : coordinate;
}

struct geohash_point geohash_centre_of(struct geohash_cell cell)
{
    struct geohash_area area = geohash_area_of(cell);
    return (struct geohash_point){
        within((area.min.longitude + area.max.longitude) / 2, GEOHASH_LONGITUDE_MAX),
        within((area.min.latitude + area.max.latitude) / 2, GEOHASH_LATITUDE_MAX),
    };
}

struct geohash_cell geohash_neighbour(struct geohash_cell cell, int east, int north)
{
    uint64_t mask = ((uint64_t)1 << cell.step) - 1;
    uint64_t row = gather(cell.bits), column = gather(cell.bits >> 1);
    /* A coordinate that stays keeps the bit too many that it may have. */
    column = east ? (column + (uint64_t)east) & mask : column;
    row = north ? (row + (uint64_t)north) & mask : row;
    return (struct geohash_cell){spread(row) | spread(column) << 1, cell.step};
}

uint64_t geohash_score_min(struct geohash_cell cell)
{
    return cell.bits << (2 * (GEOHASH_MAX_STEP - cell.step));
}

uint64_t geohash_score_end(struct geohash_cell cell)
{
    return (cell.bits + 1) << (2 * (GEOHASH_MAX_STEP - cell.step));
}

struct geohash_point geohash_point_of_score(double score)
{
    /* Any sorted set may be asked: what is no geohash becomes some point. */
    uint64_t bits = score >= 0 && score < 18446744073709551616.0 ? (uint64_t)score : 0;
    return geohash_centre_of((struct geohash_cell){bits, GEOHASH_MAX_STEP});
}

void geohash_text(struct geohash_point point, char text[GEOHASH_TEXT_BYTES])
{
    static const char alphabet[] = "0123456789bcdefghjkmnpqrstuvwxyz";
    uint64_t bits = encode_within(point, POLE_LATITUDE, GEOHASH_MAX_STEP).bits;
    for (unsigned i = 0; i + 1 < GEOHASH_TEXT_BYTES; i++) {
        text[i] = alphabet[bits >> (2 * GEOHASH_MAX_STEP - 5 * (i + 1)) & 31];
    }
    text[GEOHASH_TEXT_BYTES - 1] = alphabet[0];
}

/* ---- Distances ---- */

static double latitude_distance_m(double a, double b)
{
    return EARTH_RADIUS_M * fabs(to_radians(b) - to_radians(a));
}

double geohash_distance_m(struct geohash_point a, struct geohash_point b)
{
    double v = sin((to_radians(b.longitude) - to_radians(a.longitude)) / 2);
    if (v == 0.0) {
        return latitude_distance_m(a.latitude, b.latitude);
    }
    double a_latitude = to_radians(a.latitude), b_latitude = to_radians(b.latitude);
    double u = sin((b_latitude - a_latitude) / 2);
    double h = u * u + cos(a_latitude) * cos(b_latitude) * v * v;
    return 2.0 * EARTH_RADIUS_M * asin(sqrt(h));
}

bool geohash_shape_contains(const struct geohash_shape *shape, struct geohash_point point,
                            double *distance_m)
{
    if (!shape->is_box) {
        *distance_m = geohash_distance_m(shape->centre, point);
        return *distance_m <= shape->radius_m;
    }
    if (latitude_distance_m(point.latitude, shape->centre.latitude) > shape->height_m / 2) {
        return false;
    }
    struct geohash_point beside = {shape->centre.longitude, point.latitude};
    if (geohash_distance_m(point, beside) > shape->width_m / 2) {
        return false;
    }
    *distance_m = geohash_distance_m(shape->centre, point);
    return true;
}

/* ---- Covering ---- */

/* The rectangle of degrees around a shape. */
static struct geohash_area bounds_of(const struct geohash_shape *shape)
{
    struct geohash_point c = shape->centre;
    double height = shape->is_box ? shape->height_m / 2 : shape->radius_m;
    double width = shape->is_box ? shape->width_m / 2 : shape->radius_m;
    double rise = to_degrees(height / EARTH_RADIUS_M);
    /* The edge nearer to the pole has the widest angle. */
    double edge = c.latitude < 0 ? c.latitude - rise : c.latitude + rise;
    double side = to_degrees(width / EARTH_RADIUS_M / cos(to_radians(edge)));
    return (struct geohash_area){{c.longitude - side, c.latitude - rise},
                                 {c.longitude + side, c.latitude + rise}};
}

/* The finest step at which a cell and its neighbours should cover the radius. */
static unsigned step_for(double radius_m, double latitude)
{
    if (radius_m == 0) {
        return GEOHASH_MAX_STEP;
    }
    int step = 1;
    for (; radius_m < MERCATOR_MAX_M && step <= GEOHASH_MAX_STEP + 4; step++) {
        radius_m *= 2;
    }
    step -= 2;
    /* Cells are narrower towards the poles. */
    step -= fabs(latitude) > 66;
    step -= fabs(latitude) > 80;
    return step < 1 ? 1 : step > GEOHASH_MAX_STEP ? GEOHASH_MAX_STEP : (unsigned)step;
}

/* True when the cell's neighbours end before the shape does. */
static bool is_too_fine(struct geohash_cell cell, const struct geohash_area *bounds)
{
    return geohash_area_of(geohash_neighbour(cell, 0, 1)).max.latitude < bounds->max.latitude ||
           geohash_area_of(geohash_neighbour(cell, 0, -1)).min.latitude > bounds->min.latitude ||
           geohash_area_of(geohash_neighbour(cell, 1, 0)).max.longitude < bounds->max.longitude ||
           geohash_area_of(geohash_neighbour(cell, -1, 0)).min.longitude > bounds->min.longitude;
}

/* True when the shape does not reach to the neighbour in that direction. */
static bool is_out_of_reach(const struct geohash_area *area, const struct geohash_area *bounds,
                            int east, int north)
{
    return (north < 0 && area->min.latitude < bounds->min.latitude) ||
           (north > 0 && area->max.latitude > bounds->max.latitude) ||
           (east < 0 && area->min.longitude < bounds->min.longitude) ||
           (east > 0 && area->max.longitude > bounds->max.longitude);
}

int geohash_cover(const struct geohash_shape *shape, struct geohash_cell cells[GEOHASH_COVER_MAX])
{
    static const struct {
        int east, north;
    } order[GEOHASH_COVER_MAX] = {
        {0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1},
    };
    struct geohash_area bounds = bounds_of(shape);
    double radius_m = shape->is_box ? sqrt(shape->width_m / 2 * (shape->width_m / 2) +
                                           shape->height_m / 2 * (shape->height_m / 2))
                                    : shape->radius_m;
    unsigned step = step_for(radius_m, shape->centre.latitude);
    struct geohash_cell centre = geohash_encode(shape->centre, step);
    if (step > 1 && is_too_fine(centre, &bounds)) {
        centre = geohash_encode(shape->centre, --step);
    }
    struct geohash_area area = geohash_area_of(centre);
    int count = 0;
    for (int i = 0; i < GEOHASH_COVER_MAX; i++) {
        struct geohash_cell cell =
            i == 0 ? centre : geohash_neighbour(centre, order[i].east, order[i].north);
        if (step >= 2 && is_out_of_reach(&area, &bounds, order[i].east, order[i].north)) {
            continue;
        }
        /* Large shapes meet themselves behind the edge of the world. */
        if (count > 1 && cell.bits == cells[count - 1].bits) {
            continue;
        }
        cells[count++] = cell;
    }
    return count;
}
