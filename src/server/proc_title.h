/* The process's name as ps shows it: set-proc-title, proc-title-template. The kernel shows what
 * stands where the arguments were, so the title is written there, and over the environment behind
 * them, which moves away. State: world; the place is found at boot. */
#ifndef SERVER_PROC_TITLE_H
#define SERVER_PROC_TITLE_H

#include "base/option.h"

/* Finds the place and moves the environment. First thing in main; argv stays as it is until the
 * title is set. */
void proc_title_setup(int argc, char **argv);
/* Writes what the template says, with port and address of now. Does nothing with set-proc-title
 * no. */
void proc_title_set(void);
/* The same in a child, whose title is `what` and the address. Takes no lock and frees nothing. */
void proc_title_set_child(const char *what);
/* Frees the template. */
void proc_title_teardown(void);

extern const struct option proc_title_options[];

#endif
