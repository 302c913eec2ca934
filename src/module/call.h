/* Calls of modules (call.c). */
#ifndef MODULE_CALL_H
#define MODULE_CALL_H

/* Frees what is kept between calls. */
void call_teardown(void);

#endif
