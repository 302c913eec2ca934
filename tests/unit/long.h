/* How long a long test of one thread is. */
#ifndef TESTS_UNIT_LONG_H
#define TESTS_UNIT_LONG_H

/* n, and an eighth, rounded up, under ThreadSanitizer: it takes ten times as long there, and one
 * thread races with nobody. */
#if defined(__SANITIZE_THREAD__)
#define UNIT_LONG(n) (((n) + 7) / 8)
#else
#define UNIT_LONG(n) (n)
#endif

#endif
