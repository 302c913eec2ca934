/* Descriptors that modules have watched (event_loop.c). */
#ifndef MODULE_EVENT_LOOP_H
#define MODULE_EVENT_LOOP_H

/* The main loop ends: it watches them no more. Main thread. */
void event_loop_stop(void);
/* Frees the records; no job is left. */
void event_loop_teardown(void);

#endif
