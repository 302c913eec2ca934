/* Clocks. Wall time for expiry and what users see, monotonic time for time-outs and durations.
 * Readings are plain values; nothing is cached behind the caller's back (a server thread reads once
 * a turn and hands the value down). State: immutable after clock_setup; the skew is atomic. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Measures the time stamp counter against the monotonic clock. Call once before threads start. */
void clock_setup(void);
/* Microseconds since the Unix epoch. */
int64_t clock_wall_us(void);
/* Milliseconds since the Unix epoch. */
int64_t clock_wall_ms(void);
/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t clock_mono_ns(void);
/* Microseconds of CLOCK_MONOTONIC. */
uint64_t clock_mono_us(void);
/* Raw ticks for short durations: the TSC where it is invariant, else nanoseconds. Cheapest (8 ns).
 */
uint64_t clock_ticks(void);
/* Converts a difference of clock_ticks() to nanoseconds. */
uint64_t clock_ticks_to_ns(uint64_t ticks);
/* What is left of so much time where a clock goes a hundredth slower. */
static inline int64_t clock_slowed(int64_t passed)
{
    return passed - passed / 100;
}
/* Test seam: shifts the wall clock of this process by `skew_ms`. */
void clock_set_skew_ms(int64_t skew_ms);

#endif
