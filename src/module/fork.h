/* Children that modules fork. See fork.c. */
#ifndef MODULE_FORK_H
#define MODULE_FORK_H

/* Boot: looks after them from now on; its reverse ends one that runs. */
void fork_setup(void);
void fork_teardown(void);

#endif
