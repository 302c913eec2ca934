/* The main thread's loop: signals, cron, listeners, and waiting for the end. */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

struct event_base;

/* Makes the loop; signals are handled in it from now on. */
struct event_base *loop_create(void);
/* Runs until somebody asks for the end; returns the flags he gave (enum shutdown_flag). */
unsigned loop_run(struct event_base *base);
/* Has the main thread run `function` in its loop, asleep (without the GIL). Any thread, while the
 * loop is there; at its end what has not run never will. */
void loop_post(void (*function)(void));
void loop_destroy(struct event_base *base);

#endif
