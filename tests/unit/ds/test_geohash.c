/* Geohashes: ds/geohash.h. Scores, distances and searches are compared with a redis-server in
 * tests/differential; here is what must hold by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ds/geohash.h"

#include <math.h>
#include <string.h>

static uint64_t rng_state;

static uint64_t next_random(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* From -max to max, the upper edge not included. */
static double somewhere(double max)
{
    return ((double)(next_random() >> 11) / 9007199254740992.0 * 2 - 1) * max;
}

static struct geohash_point some_point(void)
{
    return (struct geohash_point){somewhere(GEOHASH_LONGITUDE_MAX),
                                  somewhere(GEOHASH_LATITUDE_MAX)};
}

/* Interleaving bit by bit. */
static void test_encoding(void **state)
{
    (void)state;
    rng_state = 1;
    for (int round = 0; round < 20000; round++) {
        struct geohash_point p = some_point();
        unsigned step = 1 + (unsigned)(next_random() % GEOHASH_MAX_STEP);
        double parts = (double)((uint64_t)1 << step);
        uint64_t row =
            (uint64_t)((p.latitude + GEOHASH_LATITUDE_MAX) / (2 * GEOHASH_LATITUDE_MAX) * parts);
        uint64_t column = (uint64_t)((p.longitude + 180) / 360 * parts);
        uint64_t bits = 0;
        for (unsigned i = 0; i < step; i++) {
            bits |= (row >> i & 1) << (2 * i) | (column >> i & 1) << (2 * i + 1);
        }
        struct geohash_cell cell = geohash_encode(p, step);
        assert_true(cell.bits == bits);
        struct geohash_area area = geohash_area_of(cell);
        assert_true(area.min.longitude <= p.longitude && p.longitude <= area.max.longitude);
        assert_true(area.min.latitude <= p.latitude && p.latitude <= area.max.latitude);
    }
}

static void test_a_score_comes_back(void **state)
{
    (void)state;
    rng_state = 2;
    for (int round = 0; round < 20000; round++) {
        struct geohash_point p = some_point();
        struct geohash_cell cell = geohash_encode(p, GEOHASH_MAX_STEP);
        struct geohash_point back = geohash_point_of_score((double)cell.bits);
        assert_true(geohash_distance_m(p, back) < 0.6);
        struct geohash_cell coarse = geohash_encode(p, 7);
        assert_true(geohash_score_min(coarse) <= cell.bits &&
                    cell.bits < geohash_score_end(coarse));
    }
}

static void test_neighbours(void **state)
{
    (void)state;
    rng_state = 3;
    for (int round = 0; round < 5000; round++) {
        unsigned step = 1 + (unsigned)(next_random() % GEOHASH_MAX_STEP);
        struct geohash_cell cell = geohash_encode(some_point(), step);
        for (int east = -1; east <= 1; east++) {
            for (int north = -1; north <= 1; north++) {
                struct geohash_cell there = geohash_neighbour(cell, east, north);
                assert_true(there.bits < (uint64_t)1 << (2 * step));
                struct geohash_cell back = geohash_neighbour(there, -east, -north);
                assert_true(back.bits == cell.bits && back.step == step);
            }
        }
    }
}

static void test_known_text(void **state)
{
    (void)state;
    char text[GEOHASH_TEXT_BYTES];
    geohash_text((struct geohash_point){13.361389, 38.115556}, text);
    assert_memory_equal(text, "sqc8b49rny0", GEOHASH_TEXT_BYTES);
}

static void test_distances(void **state)
{
    (void)state;
    struct geohash_point a = {0, 0}, b = {90, 0}, c = {0, 45};
    const double quarter = 6372797.560856 * M_PI / 2;
    assert_true(fabs(geohash_distance_m(a, b) - quarter) < 0.001);
    assert_true(fabs(geohash_distance_m(a, c) - quarter / 2) < 0.001);
    assert_true(geohash_distance_m(a, a) == 0);
}

static bool is_covered(const struct geohash_cell *cells, int count, struct geohash_point p)
{
    uint64_t score = geohash_encode(p, GEOHASH_MAX_STEP).bits;
    for (int i = 0; i < count; i++) {
        if (score >= geohash_score_min(cells[i]) && score < geohash_score_end(cells[i])) {
            return true;
        }
    }
    return false;
}

/* Away from the edges of the world, what lies in the shape lies in a cell. */
static void test_cover(void **state)
{
    (void)state;
    rng_state = 4;
    for (int round = 0; round < 3000; round++) {
        struct geohash_shape shape = {.centre = {somewhere(100), somewhere(60)}};
        double size = pow(10, 2 + 3.5 * (double)(next_random() >> 11) / 9007199254740992.0);
        shape.is_box = next_random() % 2;
        shape.radius_m = size;
        shape.width_m = size;
        shape.height_m = size * (0.1 + (double)(next_random() % 20) / 10);
        struct geohash_cell cells[GEOHASH_COVER_MAX];
        int count = geohash_cover(&shape, cells);
        assert_in_range(count, 1, GEOHASH_COVER_MAX);
        double reach = size * 2 / 111000;
        for (int i = 0; i < 50; i++) {
            struct geohash_point p = {shape.centre.longitude + somewhere(reach * 2),
                                      shape.centre.latitude + somewhere(reach)};
            double distance;
            if (geohash_is_valid_point(p) && geohash_shape_contains(&shape, p, &distance)) {
                assert_true(is_covered(cells, count, p));
            }
        }
    }
}

/* Sizes that are no sizes. */
static void test_extreme_shapes(void **state)
{
    (void)state;
    const double sizes[] = {0, 5e-324, 1e-300, 1e300, INFINITY};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int corner = 0; corner < 9; corner++) {
            struct geohash_shape shape = {.centre = {(corner % 3 - 1) * GEOHASH_LONGITUDE_MAX,
                                                     (corner / 3 - 1) * GEOHASH_LATITUDE_MAX},
                                          .radius_m = sizes[i]};
            struct geohash_cell cells[GEOHASH_COVER_MAX];
            assert_in_range(geohash_cover(&shape, cells), 1, GEOHASH_COVER_MAX);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoding),       cmocka_unit_test(test_a_score_comes_back),
        cmocka_unit_test(test_neighbours),     cmocka_unit_test(test_known_text),
        cmocka_unit_test(test_distances),      cmocka_unit_test(test_cover),
        cmocka_unit_test(test_extreme_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
